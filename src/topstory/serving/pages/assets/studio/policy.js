// Policy: what decides now, what others would have earned, and changing it.

import { $, h, say, count, duration } from "../dom.js";
import { ask, every, factList, facts, get } from "./shell.js";
import { listen, showTrial } from "./what_if.js";

const path = `/v1/pools/${encodeURIComponent(facts.pool)}/policy`;

async function show() {
  const [state, history, found] = await Promise.all([get("/studio/data/policy"), ask(path), get("/studio/data/what-if")]);
  $("#policy").replaceChildren(factList([
    ["Model", state.model], ["Explorer", state.explorer],
    ...Object.entries(state.parameters).map(([name, value]) => [name, String(value)]),
    ["Learned from", `${count(state.trials)} visits`], ["Payoffs", count(state.payoffs)],
    ["Learned last", `${duration(state.learned)} ago`], ["Drift by rounding", state.drift === null ? "not measured yet" : state.drift.toExponential(1)], ["Last record", count(state.record)]]));
  showTrial(found, promote);
  changes(history);
}

function changes(found) {
  const box = $("#history");
  const text = JSON.stringify([found.changes, found.previous?.summary]);
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  const rows = found.changes.map((each) => h("tr", null, h("td", { class: "r" }, count(each.record)), h("td", null, new Date(each.at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })), h("td", null, each.kind), h("td", null, each.policy), h("td", null, each.key), h("td", null, each.note)));
  box.replaceChildren(rows.length
    ? h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Changes of the policy" }, h("table", null, h("thead", null, h("tr", null, ["Record", "When", "What", "To", "By", "Note"].map((words, i) => h("th", { scope: "col", class: i ? null : "r" }, words)))), h("tbody", null, rows)))
    : h("p", { class: "muted" }, "None: the pool has the policy that it began with."),
  ...(found.previous && facts.can_promote ? [h("p", { class: "actions" }, h("button", { type: "button", class: "quiet", id: "revert", onclick: revert }, `Go back to ${found.previous.summary}`))] : []));
}

async function changed(work) {
  say($("#policy-problem"), "");
  try {
    await work();
    await show();
  } catch (error) {
    say($("#policy-problem"), error.message);
  }
}

const promote = (each, button) => {
  button.disabled = true;
  return changed(async () => {
    const { policy } = await get(`/studio/data/what-if/policy?place=${each.place}`);
    await ask(path, { method: "PUT", body: { policy, note: `from the studio: ${each.label}` } });
  }).finally(() => { button.disabled = false; });
};
const revert = () => changed(() => ask(`${path}/revert`, { method: "POST" }));

listen(show);
every(1, show);
