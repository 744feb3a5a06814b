// Visitors: who comes, what they like, and what somebody would be shown.

import { $, h, s, percent } from "../dom.js";
import { whyView } from "../why.js";
import { every, facts, failed, get, post } from "./shell.js";

function segment(each) {
  return h("article", { class: "card" },
    h("h3", null, each.name),
    s("svg", { class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": `share ${percent(each.share, 0)}` }, s("rect", { width: 100 * (each.share ?? 0), height: 8 })),
    h("p", { class: "muted small num" }, `${percent(each.share, 0)} of visits · CTR ${percent(each.ctr)}`),
    h("ol", null, each.likes.map((like) => h("li", null, h("span", null, like.title), h("span", { class: "muted num" }, percent(like.estimate, 1))))));
}

every(3, async () => {
  const found = await get("/studio/data/visitors");
  $("#segments").replaceChildren(...found.map(segment));
});

let inputs = [];
const people = $("#people");

async function asked(user) {
  try {
    const why = await post("/studio/data/explain", { user });
    $("#answer").replaceChildren(h("p", { class: "shown-story" }, h("span", { class: "muted small" }, "They would be shown"), h("strong", null, why.article.title)), whyView(why));
  } catch (error) {
    if (error.status === 409) $("#answer").replaceChildren(h("p", { class: "muted" }, "No article can be shown now."));
    else if (error.status === 422) $("#answer").replaceChildren(h("p", { class: "problem" }, error.message));
    else failed(error);
  }
}

let soon;
function mixed() {
  const sum = inputs.reduce((total, input) => total + Number(input.value), 0) || 1;
  const shares = inputs.map((input) => Number(input.value) / sum);
  inputs.forEach((input, i) => { input.nextElementSibling.textContent = percent(shares[i], 0); });
  clearTimeout(soon);
  soon = setTimeout(() => asked([...shares, 1]), 120);
}

function choose(person, button) {
  inputs.forEach((input, i) => { input.value = person.user[i] ?? 0; });
  for (const each of people.children) each.setAttribute("aria-pressed", each === button);
  mixed();
}

inputs = facts.segments.slice(0, facts.context - 1).map((name) => {
  const input = h("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": name, oninput: () => { for (const each of people.children) each.setAttribute("aria-pressed", false); mixed(); } });
  $("#mix").append(h("div", { class: "slider" }, h("span", { class: "cap" }, name), input, h("output")));
  return input;
});
for (const person of facts.personas) {
  const button = h("button", { type: "button", "aria-pressed": "false", title: person.likes, onclick: () => choose(person, button) }, person.name);
  people.append(button);
}
choose(facts.personas[0], people.firstElementChild);

$("#ask-profile").addEventListener("click", () => {
  try {
    asked(JSON.parse($("#profile").value));
  } catch {
    $("#answer").replaceChildren(h("p", { class: "problem" }, "The profile is not JSON: it looks like {\"age\": 34, \"device\": \"mobile\"}."));
  }
});
$("#ask").addEventListener("submit", (event) => event.preventDefault());
