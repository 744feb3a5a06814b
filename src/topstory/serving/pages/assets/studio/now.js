// Now: what each bucket earns, and how sure that is.

import { $, h, say, count, signed, percent, change } from "../dom.js";
import { lineChart, intervalBar } from "./chart.js";
import { alarms, facts, live } from "./shell.js";

const NAMES = { deployment: "deployment", learning: "learning", uniform: "at random" };
const PLACES = ["learning", "deployment", "uniform"];
const NOTES = {
  live: "Each point is the mean of the minute before it.",
  hour: "Each point is the mean of the five minutes before it.",
  day: "Each point is the mean of the two hours before it.",
  week: "Each point is the mean of the twelve hours before it.",
};
const MEANS = { live: 60, hour: 300, day: 7200, week: 43200 };
let window_ = "live";
let last = null;

const time = (options) => new Intl.DateTimeFormat("en", { hour12: false, ...options });
const FORMATS = {
  live: time({ hour: "2-digit", minute: "2-digit", second: "2-digit" }),
  hour: time({ hour: "2-digit", minute: "2-digit" }),
  day: time({ hour: "2-digit", minute: "2-digit" }),
  week: time({ weekday: "short", day: "numeric" }),
};

const STEPS = [10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800];

function timeTicks(low, high, wanted) {
  const step = STEPS.find((each) => (high - low) / each <= wanted) ?? STEPS.at(-1);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push([at, FORMATS[window_].format(at * 1000)]);
  return found;
}

// Samples are counts since ever: a rate is a difference over the time before it.
function rates(samples, top, bottom, seconds, least) {
  const points = [];
  let start = 0;
  for (let end = 1; end < samples.length; end++) {
    while (samples[start + 1][0] <= samples[end][0] - seconds) start++;
    const many = samples[end][1][bottom] - samples[start][1][bottom];
    if (many >= least) points.push([samples[end][0], (samples[end][1][top] - samples[start][1][top]) / many]);
  }
  return points;
}

function drawChart(state) {
  const samples = state.series[window_];
  const seconds = MEANS[window_];
  const total = samples.length ? samples.at(-1)[1][2] - samples[0][1][2] : 0;
  const least = total > 1000 ? 150 : 20; // visits behind a point: with fewer it would only be noise
  const lines = ["deployment", "learning", "uniform"].map((bucket) => {
    const place = PLACES.indexOf(bucket);
    return { name: NAMES[bucket], kind: bucket, points: rates(samples, 3 + place, place, seconds, least) };
  });
  let note = NOTES[window_];
  if (state.simulation && window_ === "live") {
    const truth = state.simulation.series;
    lines.push({ name: "best possible", kind: "ceiling", dash: "2 5", points: rates(truth, 1, 0, seconds, least) });
    lines.push({ name: "truth", kind: "truth", dash: "1 5", points: rates(truth, 4, 3, seconds, least) });
    note += " Dotted, because only the simulator knows it: the true rate of what deployment shows, and of the best story for each visitor.";
  }
  say($("#chart-note"), note);
  const ends = lines.filter((line) => line.points.length).map((line) => `${line.name} ${percent(line.points.at(-1)[1])}`);
  lineChart($("#chart"), { lines, x: timeTicks, y: (at) => percent(at, at < 0.1 ? 1 : 0), label: `Click-through rate by bucket; now ${ends.join(", ") || "nothing yet"}` });
}

function drawTable(state) {
  const body = $("#buckets tbody");
  body.replaceChildren(...["deployment", "learning", "uniform"].map((bucket) => {
    const all = state.buckets[bucket];
    return h("tr", null,
      h("th", { scope: "row" }, h("span", { class: `key ${bucket}` }), NAMES[bucket]),
      h("td", { class: "r" }, percent(state.shares[bucket], 0)),
      h("td", { class: "r" }, count(all.shows)),
      h("td", { class: "r" }, count(all.payoff)),
      h("td", { class: "r strong" }, percent(all.ctr)),
      ["hour", "day", "week"].map((each) => h("td", { class: "r" }, percent(state.windows[each][bucket].ctr))));
  }));
}

function visitsPerSecond(samples) {
  if (samples.length < 2) return null;
  const end = samples.at(-1);
  const start = samples.findLast((each) => each[0] <= end[0] - 10) ?? samples[0];
  const total = (each) => each[1][0] + each[1][1] + each[1][2];
  return (total(end) - total(start)) / Math.max(1, end[0] - start[0]);
}

function show(state) {
  last = state;
  const shows = PLACES.reduce((sum, bucket) => sum + state.buckets[bucket].shows, 0);
  $("#quiet").hidden = shows > 0;
  alarms(state.alarms);
  const { value, interval, words } = state.lift;
  say($("#lift"), value === null ? "–" : change(value));
  say($("#lift-unit"), value === null ? "" : value < 0 ? "fewer clicks" : "more clicks");
  say($("#lift-words"), value === null ? (shows ? "too early to say" : "waiting for visitors") : words[0].toUpperCase() + words.slice(1) + (interval ? `: between ${change(interval[0])} and ${change(interval[1])}` : ""));
  $("#lift-words").dataset.words = words;
  intervalBar($("#lift-bar"), { value, interval, words: interval ? `between ${change(interval[0])} and ${change(interval[1])}` : "" });
  say($("#gained"), signed(state.gained));
  say($("#cost"), state.cost === null ? "–" : count(Math.max(0, state.cost)));
  const rate = visitsPerSecond(state.series.live);
  say($("#rate"), rate === null ? "–" : rate < 10 ? rate.toFixed(1) : count(rate));
  say($("#articles"), count(state.showable));
  say($("#articles-note"), state.articles > state.showable ? `of ${count(state.articles)} can be shown now` : "can be shown now");
  drawChart(state);
  drawTable(state);
}

for (const button of document.querySelectorAll("[data-window]")) {
  button.addEventListener("click", () => {
    window_ = button.dataset.window;
    for (const each of document.querySelectorAll("[data-window]")) each.setAttribute("aria-pressed", each === button);
    if (last) show(last);
  });
}
if (facts.simulated) document.body.classList.add("simulated");
live(show);
