// Policy: what decides now, what others would have earned, and changing it.

import { $, h, say, change, count, duration, percent } from "../dom.js";
import { dotChart } from "./chart.js";
import { ask, every, factList, facts, failed, get, post } from "./shell.js";

const path = `/v1/pools/${encodeURIComponent(facts.pool)}/policy`;
const START = ["linucb-hybrid", "linucb-disjoint", "ucb", "random"];
let listed = false;
let drawn = "";

function list(found) {
  if (listed || !facts.can_promote) return;
  listed = true;
  $("#choices").replaceChildren(...Object.entries(found.choices).map(([name, each]) => h("label", null,
    h("input", { type: "checkbox", name, "data-tuned": each.tuned, "data-value": each.value, checked: START.includes(name) || name === found.now }),
    h("span", null, each.title))));
}

function result(found) {
  const text = JSON.stringify(found);
  if (text === drawn) return;
  drawn = text;
  const rows = found.candidates.filter((each) => each.value !== null);
  if (!rows.length) return $("#result").replaceChildren(h("p", { class: "muted" }, "The journal has too few visits to judge anything yet."));
  const best = rows.reduce((a, b) => (b.value > a.value ? b : a));
  const logged = rows[0].logged;
  const box = h("div", { class: "chart" });
  const sure = best.lift_interval && best.lift_interval[0] > 0;
  $("#result").replaceChildren(
    h("p", { class: "verdict-line" }, h("strong", null, best.label), sure
      ? ` would earn ${change(best.lift)} (between ${change(best.lift_interval[0])} and ${change(best.lift_interval[1])}) against what all buckets earned.`
      : ` looks best, at ${percent(best.value)}, but that may be chance.`),
    box,
    h("p", { class: "muted small" }, `Payoff per visit with 95 % intervals. Dashed: what all buckets together earned, ${percent(logged)}. ${count(found.events)} visits; the best one was judged on ${count(best.judged)} of them.`),
    ...rows.flatMap((each) => each.cautions.map((words) => h("p", { class: "muted small" }, `${each.label}: ${words}`))).slice(0, 4),
    facts.can_promote ? h("div", { class: "actions" }, [...rows].sort((a, b) => b.value - a.value).slice(0, 3).map((each) => h("button", { type: "button", class: each === best ? "button" : "quiet", onclick: (event) => promote(each, event.target) }, `Promote ${each.label}`))) : null);
  dotChart(box, { rows: rows.map((each) => ({ name: each.label, value: each.value, interval: each.interval, best: each === best })), reference: { value: logged }, format: (at) => percent(at, 1), label: rows.map((each) => `${each.label} ${percent(each.value)}`).join(", ") });
}

async function show() {
  const [state, history, found] = await Promise.all([get("/studio/data/policy"), ask(path), get("/studio/data/what-if")]);
  $("#policy").replaceChildren(factList([
    ["Model", state.model], ["Explorer", state.explorer],
    ...Object.entries(state.parameters).map(([name, value]) => [name, String(value)]),
    ["Learned from", `${count(state.trials)} visits`], ["Payoffs", count(state.payoffs)],
    ["Learned last", `${duration(state.learned)} ago`], ["Drift by rounding", state.drift === null ? "not measured yet" : state.drift.toExponential(1)], ["Last record", count(state.record)]]));
  list(found);
  const running = found.state === "running" && found.pool === facts.pool;
  if (facts.can_promote) {
    $("#start").disabled = found.state === "running";
    $("#cancel").hidden = found.state !== "running";
  }
  const doing = $("#doing");
  if (running) {
    const bar = doing.querySelector("progress") ?? doing.appendChild(h("progress", { max: 1, "aria-label": "Progress" }));
    bar.value = found.done;
    say(doing.querySelector("p") ?? doing.appendChild(h("p", { class: "muted small" })), `${found.doing} …`);
  } else doing.replaceChildren(...(found.state === "failed" ? [h("p", { class: "problem" }, found.message)] : found.state === "cancelled" ? [h("p", { class: "muted" }, "Cancelled.")] : []));
  if (found.state === "done" && found.pool === facts.pool) result(found);
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

if (facts.can_promote) {
  $("#try").addEventListener("submit", async (event) => {
    event.preventDefault();
    const candidates = [...$("#choices").querySelectorAll("input:checked")].map((input) => ({ name: input.name, parameters: input.dataset.tuned ? { [input.dataset.tuned]: Number(input.dataset.value) } : {} }));
    if (!candidates.length) return $("#doing").replaceChildren(h("p", { class: "problem" }, "Choose at least one policy to try."));
    try {
      $("#result").replaceChildren();
      drawn = "";
      await post("/studio/data/what-if", { candidates });
      await show();
    } catch (error) {
      if (error.status === 409 || error.status === 422) $("#doing").replaceChildren(h("p", { class: "problem" }, error.message));
      else failed(error);
    }
  });
  $("#cancel").addEventListener("click", () => post("/studio/data/what-if/cancel").then(show).catch(failed));
}

every(1, show);
