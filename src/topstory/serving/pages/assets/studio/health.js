// Health: how fast, how full, and what was refused.

import { $, h, count, duration, bytes, percent } from "../dom.js";
import { alarms, every, factList, get } from "./shell.js";

const tile = (name, value, note) => h("div", { class: "card" }, h("h2", null, name), h("p", { class: "mid num" }, value), h("p", { class: "muted small" }, note));

every(2, async () => {
  const [state, now] = await Promise.all([get("/studio/data/health"), get("/studio/data/now")]);
  alarms(now.alarms);
  const decide = state.routes.find((each) => each.route === "/v1/decide");
  const total = state.routes.reduce((sum, each) => sum + each.requests, 0);
  const refused = state.refused.reduce((sum, each) => sum + each.requests, 0);
  const { journal, disk } = state;
  $("#tiles").replaceChildren(
    tile("A request to decide takes", decide ? duration(decide.mean) : "–", decide ? `99 % below ${duration(decide.p99)}` : "none was asked for yet"),
    tile("Requests", count(total), refused ? `${percent(refused / Math.max(1, total), 1)} were refused` : "none was refused"),
    tile("Journal", journal.failing ? "failing" : "in order", journal.failing ?? `${count(journal.records)} records`),
    tile("Processes", state.workers > 1 ? `${state.workers} + 1` : "1", state.workers > 1 ? "workers, and one that learns" : "answers and learns"),
    tile("Disk", bytes(disk.free), `free of ${bytes(disk.total)}`));
  $("#routes tbody").replaceChildren(...state.routes.map((each) => h("tr", null,
    h("th", { scope: "row" }, each.route === "other" ? "all others" : each.route),
    h("td", { class: "r" }, count(each.requests)),
    ["mean", "p50", "p95", "p99"].map((name) => h("td", { class: "r" }, each[name] === null ? "> 2.5 s" : duration(each[name]))))));
  $("#refused").replaceChildren(state.refused.length
    ? h("div", { class: "scroll" }, h("table", null, h("thead", null, h("tr", null, h("th", { scope: "col" }, "Status"), h("th", { scope: "col" }, "Because"), h("th", { scope: "col", class: "r" }, "Requests"))),
      h("tbody", null, state.refused.map((each) => h("tr", null, h("th", { scope: "row" }, each.status), h("td", null, each.reason), h("td", { class: "r" }, count(each.requests)))))))
    : h("p", { class: "muted" }, "None since the start."));
  const outliers = Object.entries(state.outliers).filter(([, number]) => number);
  $("#journal").replaceChildren(factList([
    ["Kept in", journal.kind], ["Records", count(journal.records)], ["Size", journal.bytes ? bytes(journal.bytes) : "–"],
    ["Waiting", count(journal.waiting)], ["Commits", count(journal.commits)], ["Last commit", duration(journal.last_commit_seconds)],
    ["Snapshot", `${duration(journal.snapshot_age_seconds)} ago`], ["Records since", count(journal.snapshot_lag_records)],
    ["Clock ahead", duration(Math.max(0, journal.clock_ahead_seconds))], ["Version", state.version],
    ...outliers.map(([kind, number]) => [`Out of range: ${kind}`, count(number)])]));
});
