// Why a story: the same words on the front page and in the studio.

import { h, s, percent } from "./dom.js";

const BUCKETS = {
  deployment: "This visit is in the deployment bucket: it gets the story with the best estimate.",
  learning: "This visit is in the learning bucket: an uncertain story may be tried, and the answer is learned from.",
  uniform: "This visit is in the uniform bucket: it gets a story at random, so that the others can be compared with chance.",
};

// What an editor's lever did, and what the model would have done without it.
function leverWords({ article, runner_up: other, candidates, lead, lever }) {
  const model = `The model expects ${percent(article.estimate)} clicks of this one, and ${percent(other.estimate)} of “${other.title}”`;
  if (lever === "pin") return `An editor pinned it here, so it is shown whatever the model expects. ${model}${lead < 0 ? ", which it would have shown" : ": it might have come first anyway"}.`;
  if (lever === "boost") return `An editor's boost, ×${article.boost}, put it first. ${model}.`;
  const held = candidates.find((each) => each.held);
  return `“${held.title}” has the better estimate, ${percent(held.estimate)}, but an editor's limit held it back from this visit. Of the others this one comes first: ${percent(article.estimate)}.`;
}

export function whyWords(why) {
  const { article, runner_up: other, bucket } = why;
  if (why.lever && other) return leverWords(why);
  if (bucket === "uniform") return `It was drawn at random among ${why.articles} stories. For this visitor the model expects ${percent(article.estimate)} clicks of it.`;
  if (!other) return "It is the only story that can be shown.";
  const ahead = why.lead >= 0;
  const main = why.reasons[0];
  const because = ahead && main && main.adds > Math.max(0, why.rest) ? ` What made the difference: ${main.name}.` : ahead ? " It does well with everybody." : "";
  if (!ahead) return `“${other.title}” has the better estimate, but this one is less certain: showing it teaches more.`;
  return `For this visitor the model expects ${percent(article.estimate)} clicks of it, and ${percent(other.estimate)} of the runner-up.${because}`;
}

export function whyView(why) {
  const largest = Math.max(...why.reasons.map((each) => Math.abs(each.adds)), Math.abs(why.rest), 1e-9);
  const reason = (name, adds) => {
    const width = (36 * Math.abs(adds)) / largest;
    return h("div", { class: "reason" },
      h("span", null, name),
      s("svg", { width: 84, height: 12, "aria-hidden": "true" },
        s("line", { x1: 42, x2: 42, y1: 0, y2: 12, class: "axis" }),
        s("rect", { x: adds < 0 ? 42 - width : 42, y: 2, width, height: 8, rx: 2, class: adds < 0 ? "minus" : "plus" })),
      h("span", { class: "r" }, `${adds < 0 ? "−" : "+"}${(100 * Math.abs(adds)).toFixed(2)}`));
  };
  const tags = (each) => [
    why.lever === "pin" && each.id === why.article.id ? "pinned" : null,
    each.boost === 1 ? null : `boost ×${each.boost}`,
    each.held ? "held back" : null,
  ].filter(Boolean).map((words) => h("span", { class: "tag lever" }, words));
  const row = (each) => h("tr", { class: each.id === why.article.id ? "first" : null },
    h("td", null, each.title, tags(each)),
    h("td", { class: "r" }, percent(each.estimate)),
    h("td", { class: "r" }, each.bonus === null ? "unknown" : `+${percent(each.bonus)}`),
    h("td", { class: "r" }, percent(each.chances[why.bucket], 0)));
  const listed = why.candidates.slice(0, 6);
  const shown = [why.article, ...listed.filter((each) => each.id !== why.article.id)].slice(0, 6);
  return h("div", { class: "why" },
    h("p", { class: "lead" }, whyWords(why)),
    h("p", null, h("span", { class: `tag ${why.bucket}` }, why.bucket), " ", h("span", { class: "muted small" }, BUCKETS[why.bucket])),
    h("div", null, h("h3", null, "The candidates"),
      h("table", null,
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "Story"), h("th", { scope: "col", class: "r" }, "Estimate"), h("th", { scope: "col", class: "r" }, "Bonus"), h("th", { scope: "col", class: "r" }, "Chance"))),
        h("tbody", null, shown.map(row)))),
    why.runner_up && why.reasons.length ? h("div", null,
      h("h3", null, `What puts it ahead of “${why.runner_up.title}”`),
      why.reasons.slice(0, 5).map((each) => reason(each.name, each.adds)),
      reason("everybody", why.rest),
      h("p", { class: "muted small" }, "In clicks per 100 visits, by the model as it is now. The bonus is for being uncertain; deployment ignores it.")) : null);
}
