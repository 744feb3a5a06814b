// Decisions: everything that was known of one, why it was made, and what it paid.

import { $, h, count, percent } from "../dom.js";
import { whyView } from "../why.js";
import { every, factList, facts, get } from "./shell.js";

const when = (text) => new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const paid = (payoff) => (payoff === null ? "nothing yet" : payoff === 1 ? "a click" : String(payoff));

function view(found) {
  const user = found.user.slice(0, -1).map((value, i) => [value, facts.segments[i] ?? `segment ${i + 1}`]).filter(([value]) => value >= 0.005).sort((a, b) => b[0] - a[0]);
  return h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", null, `Decision ${found.number}: `, h("strong", null, found.title || found.article)), h("span", { class: `tag ${found.bucket}` }, found.bucket)),
    h("div", { class: "facts" }, factList([
      ["Paid", paid(found.payoff)], ["Made", when(found.at)], ["Feedback until", when(found.expires)],
      ["Chance in its bucket", found.bucket_propensity === null ? "–" : percent(found.bucket_propensity, 1)], ["Chance over all traffic", percent(found.propensity, 1)],
      ["Learned from", found.teaches ? "yes" : "no"], ["Model as of record", count(found.model_version)], ["Pool", found.pool],
      ["Visitor", found.visitor ?? "not given"], ["Asked by key", found.key || "–"], ["Request", found.request ?? "–"],
      ["Visitor is", user.slice(0, 3).map(([value, name]) => `${name} ${percent(value, 0)}`).join("; ") || "–", "wide"],
      ["Ranking", found.ranking.join(", ")], ["Left out", found.exclude.join(", ") || "nothing"], ["Held back by limits", found.withheld.join(", ") || "nothing"]])),
    found.why ? h("div", { class: "pad-top" }, whyView(found.why)) : h("p", { class: "muted" }, "The article was removed since: why it was chosen cannot be shown any more."));
}

async function look(id) {
  if (!id) return;
  $("#id").value = id;
  try {
    $("#found").replaceChildren(view(await get(`/studio/data/decision?id=${encodeURIComponent(id)}`)));
  } catch (error) {
    $("#found").replaceChildren(h("p", { class: "problem" }, error.status === 403 ? "This service did not sign this id: is it complete, and of this service?" : error.message));
  }
}

$("#look").addEventListener("submit", (event) => { event.preventDefault(); look($("#id").value.trim()); });

every(2, async () => {
  const found = await get("/studio/data/recent");
  const focused = document.activeElement?.dataset?.number;
  $("#recent tbody").replaceChildren(...(found.length ? found.map((each) => h("tr", null,
    h("td", { class: "r" }, h("button", { type: "button", class: "as-link", "data-number": each.number, onclick: () => { look(each.id); scrollTo({ top: 0 }); } }, String(each.number))),
    h("td", null, new Date(each.at).toLocaleTimeString("en-GB")),
    h("td", null, h("span", { class: `tag ${each.bucket}` }, each.bucket)),
    h("td", null, each.title || each.article),
    h("td", { class: "r" }, each.payoff === null ? "–" : String(each.payoff)))) : [h("tr", null, h("td", { colspan: 5, class: "muted" }, "No decision since the service started. Each one appears here when your site asks for it."))]));
  if (focused) document.querySelector(`[data-number="${focused}"]`)?.focus();
});
