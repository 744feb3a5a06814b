// What if: other policies and parameters over the journal, as a form and as a chart.

import { $, h, say, change, count, percent } from "../dom.js";
import { dotChart } from "./chart.js";
import { facts, failed, post } from "./shell.js";

const BESIDE = ["linucb-disjoint", "ucb", "random"]; // to begin with, beside the policy in use
const MAX_CANDIDATES = 12; // as the service allows
let choices = null;
let drawn = "";
let told = "";

// -- the form --

const rows = () => [...$("#choices").children];

function numbers(name, values) {
  return choices[name].numbers.map((each) => h("label", { title: each.help }, h("span", null, each.symbol),
    h("input", { type: "number", step: "any", min: 0, inputmode: "decimal", "data-number": each.name, value: values[each.name] ?? null, placeholder: String(Number(each.value.toPrecision(3))) })));
}

function counted() {
  $("#more").disabled = rows().length >= MAX_CANDIDATES;
}

function add({ name, parameters = {} }, note = null) {
  const box = h("div", { class: "numbers" }, numbers(name, parameters));
  const select = h("select", { "aria-label": "Policy", onchange: () => box.replaceChildren(...numbers(select.value, {})) },
    Object.entries(choices).map(([each, found]) => h("option", { value: each, selected: each === name }, found.title)));
  const row = h("li", null, select, box, note ? h("span", { class: "muted small" }, note) : null,
    h("button", { type: "button", class: "close", "aria-label": "Leave this policy out", onclick: () => { row.remove(); counted(); } }, "×"));
  $("#choices").append(row);
  counted();
  return select;
}

function begin(found) {
  choices = found.choices;
  if (found.now) add(found.now, "decides now");
  for (const name of BESIDE) if (name !== found.now?.name) add({ name });
}

const candidate = (row) => ({
  name: row.querySelector("select").value,
  parameters: Object.fromEntries([...row.querySelectorAll("input")].filter((input) => input.value !== "").map((input) => [input.dataset.number, Number(input.value)])),
});

const complain = (words) => $("#doing").replaceChildren(h("p", { class: "problem" }, words));

export function listen(show) {
  if (!facts.can_promote) return;
  $("#more").addEventListener("click", () => add({ name: "linucb-hybrid" }).focus());
  $("#try").addEventListener("submit", async (event) => {
    event.preventDefault();
    const candidates = rows().map(candidate);
    if (!candidates.length) return complain("Add at least one policy to try.");
    try {
      $("#result").replaceChildren();
      drawn = "";
      await post("/studio/data/what-if", { candidates, method: event.target.elements.method.value });
      await show();
    } catch (error) {
      if (error.status === 409 || error.status === 422) complain(error.message);
      else failed(error);
    }
  });
  $("#cancel").addEventListener("click", () => post("/studio/data/what-if/cancel").then(show).catch(failed));
}

// -- what comes of it --

// Shows how far it is, and in the end the answer; `promote` takes a candidate and the button.
export function showTrial(found, promote) {
  if (facts.can_promote) {
    if (!choices) begin(found);
    $("#start").disabled = found.state === "running";
    $("#cancel").hidden = found.state !== "running";
  }
  const doing = $("#doing");
  if (found.state === "running" && found.pool === facts.pool) {
    const bar = doing.querySelector("progress") ?? (doing.replaceChildren(), doing.appendChild(h("progress", { max: 1, "aria-label": "Progress" })));
    bar.value = found.done;
    say(doing.querySelector("p") ?? doing.appendChild(h("p", { class: "muted small" })), `${found.doing} …`);
    told = "running";
  } else if (told !== found.state) {
    told = found.state; // said once: what the form complains about since stays there
    if (found.state === "running") say(doing, `A trial for pool ${found.pool} is under way.`);
    else if (found.state === "failed") complain(found.message);
    else doing.replaceChildren(...(found.state === "cancelled" ? [h("p", { class: "muted" }, "Cancelled.")] : []));
  }
  if (found.state === "done" && found.pool === facts.pool) answer(found, promote);
}

const sure = (each) => each.lift_interval && each.lift_interval[0] > 0;

function verdict(best, rest) {
  const alike = rest.filter((each) => each.interval && best.interval && each.interval[1] > best.interval[0]);
  const also = alike.length ? ` ${alike.length === 1 ? `${alike[0].label} may` : `${alike.length} others may`} be as good: the intervals overlap.` : "";
  return h("p", { class: "verdict-line" }, h("strong", null, best.label), sure(best)
    ? ` would earn ${change(best.lift)} (between ${change(best.lift_interval[0])} and ${change(best.lift_interval[1])}) against what all buckets earned.${also}`
    : ` looks best, at ${percent(best.value)}, but that may be chance.`);
}

function answer(found, promote) {
  const text = JSON.stringify(found);
  if (text === drawn) return;
  drawn = text;
  const judged = found.candidates.filter((each) => each.value !== null).sort((a, b) => b.value - a.value);
  if (!judged.length) return $("#result").replaceChildren(h("p", { class: "muted" }, "The journal has too few visits to judge anything yet."));
  const [best, ...rest] = judged;
  const box = h("div", { class: "chart" });
  const how = found.method === "replay"
    ? `Replay: each began with nothing and learned as it went; about ${count(best.judged)} of ${count(found.events)} visits were shown what the best one would have shown.`
    : `Each learned from the first half of ${count(found.events)} visits; the best one was judged on ${count(best.judged)}.`;
  $("#result").replaceChildren(
    verdict(best, rest),
    box,
    h("p", { class: "muted small" }, `Payoff per visit in deployment, with 95 % intervals. Dashed: what all buckets together earned, ${percent(best.logged)}. ${how}`),
    ...judged.flatMap((each) => each.cautions.map((words) => h("p", { class: "muted small" }, `${each.label}: ${words}`))).slice(0, 4),
    ...(facts.can_promote ? [h("div", { class: "actions" }, judged.slice(0, 3).map((each) => h("button", { type: "button", class: each === best && sure(best) ? "button" : "quiet", onclick: (event) => promote(each, event.target) }, `Promote ${each.label}`)))] : []));
  dotChart(box, { rows: judged.map((each) => ({ name: each.label, value: each.value, interval: each.interval, best: each === best })), reference: { value: best.logged }, format: (at) => percent(at, 1), label: judged.map((each) => `${each.label} ${percent(each.value)}`).join(", ") });
}
