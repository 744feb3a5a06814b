// Articles: a table of what each earns, and editing in place.

import { $, h, s, say, count, percent } from "../dom.js";
import { leverTags, openLevers } from "./levers.js";
import { ask, facts, failed, get, every } from "./shell.js";

const wanted = { search: "", sort: "shows", page: 1 };
const STATES = { new: ["new", "new"], learning: ["learning", "learning-state"], known: ["known", "known"] };

const age = (seconds) => {
  if (seconds === null) return "–";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
};

// One small column for each segment: the estimate as a mark, its interval as a bar.
function bars(segments, top) {
  const width = 22 * segments.length + 4;
  const Y = (value) => 34 - Math.max(0, Math.min(1, value / top)) * 30;
  const words = segments.map((each) => `${facts.segments[each.segment] ?? each.segment}: ${each.estimate === null ? "unknown" : percent(each.estimate)}`).join("; ");
  return s("svg", { class: "bars", width, height: 38, viewBox: `0 0 ${width} 38`, role: "img", "aria-label": words },
    s("title", null, words),
    s("line", { class: "base", x1: 0, x2: width, y1: 36, y2: 36 }),
    segments.map((each, i) => {
      const x = 22 * i + 12;
      if (each.estimate === null) return null;
      return [
        each.interval ? s("line", { class: "bar-i", x1: x, x2: x, y1: Y(each.interval[1]), y2: Math.min(36, Y(each.interval[0])) }) : null,
        s("line", { class: "bar-m", x1: x - 7, x2: x + 7, y1: Y(each.estimate), y2: Y(each.estimate) })];
    }));
}

function item(row) {
  const picture = /^(\/|https:)/.test(row.picture) ? h("img", { src: row.picture, alt: "", loading: "lazy", width: 72, height: 42 }) : (row.title || row.id).slice(0, 1);
  return h("div", { class: "item" }, h("span", { class: "pic", "aria-hidden": "true" }, picture),
    h("div", null, h("div", { class: "t" }, row.title || row.id), h("div", { class: "i" }, row.id)));
}

function line(row, top) {
  const [words, kind] = row.showable ? STATES[row.state] : ["not shown", "off"];
  return h("tr", null,
    h("td", null, item(row)),
    h("td", null, h("span", { class: `tag ${kind}` }, words), leverTags(row.levers)),
    h("td", { class: "r", "data-head": "Age" }, age(row.age)),
    h("td", { class: "r", "data-head": "Shown" }, count(row.shows)),
    h("td", { class: "r", "data-head": "Clicks" }, count(row.payoff)),
    h("td", { class: "r strong", "data-head": "CTR" }, percent(row.ctr)),
    h("td", { "data-head": "Estimate by segment" }, bars(row.segments, top)),
    facts.can_edit ? h("td", null, h("div", { class: "row-actions" },
      h("button", { type: "button", class: "quiet", onclick: () => openLevers(row, show), "aria-label": `Levers of ${row.title || row.id}` }, "Levers"),
      h("button", { type: "button", class: "quiet", onclick: () => edit(row), "aria-label": `Edit ${row.title || row.id}` }, "Edit"),
      h("button", { type: "button", class: "quiet", onclick: () => retire(row), "aria-label": `Retire ${row.title || row.id}` }, "Retire"))) : null);
}

let asked = 0;
async function show() {
  const number = ++asked;
  const order = wanted.sort === "title" ? "up" : "down";
  const found = await get(`/studio/data/articles?search=${encodeURIComponent(wanted.search)}&sort=${wanted.sort}&order=${order}&page=${wanted.page}`);
  if (number !== asked) return; // a later question was asked meanwhile
  wanted.page = found.page;
  const top = Math.max(0.01, ...found.rows.flatMap((row) => row.segments.map((each) => Math.min(each.interval?.[1] ?? 0, 2.5 * Math.max(each.estimate ?? 0, 0.004)))));
  const focused = document.activeElement?.getAttribute("aria-label");
  $("#articles tbody").replaceChildren(...found.rows.map((row) => line(row, top)));
  if (focused) document.querySelector(`#articles [aria-label="${CSS.escape(focused)}"]`)?.focus();
  say($("#count"), wanted.search ? `${count(found.total)} of ${count(found.all)} articles match` : `${count(found.all)} articles`);
  say($("#page"), `${found.page} / ${found.pages}`);
  $("#back").disabled = found.page <= 1;
  $("#forth").disabled = found.page >= found.pages;
  document.querySelector(".pager").hidden = found.pages < 2;
  document.querySelector(".card.flush").hidden = !found.rows.length;
  const none = $("#none");
  none.hidden = found.rows.length > 0;
  if (!none.hidden) none.replaceChildren(...(found.all
    ? [h("h2", null, "No article matches"), h("p", null, "Search for a part of a title or of an id.")]
    : [h("h2", null, "No article yet"), h("p", null, facts.can_edit ? "Add the first one: from then on it can be shown to visitors." : "An editor adds articles here, or with PUT /v1/pools/…/articles/….")]));
  say($("#key-note"), `Marks are estimates for a visitor entirely in one segment, bars their intervals; from left to right: ${facts.segments.join(" · ")}.`);
}

const again = () => show().catch(failed);
let typing;
$("#search").addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => { Object.assign(wanted, { search: event.target.value, page: 1 }); again(); }, 180);
});
$("#find").addEventListener("submit", (event) => event.preventDefault());
$("#sort").addEventListener("change", (event) => { Object.assign(wanted, { sort: event.target.value, page: 1 }); again(); });
$("#back").addEventListener("click", () => { wanted.page--; again(); });
$("#forth").addEventListener("click", () => { wanted.page++; again(); });

// -- editing --

let editing = null;
const path = (id) => `/v1/pools/${encodeURIComponent(facts.pool)}/articles/${encodeURIComponent(id)}`;
const local = (when) => (when ? new Date(new Date(when) - new Date().getTimezoneOffset() * 60000).toISOString().slice(0, 16) : "");
const global = (when) => (when ? new Date(when).toISOString() : null);

function sliders(values) {
  const box = $("#f-features");
  box.hidden = !facts.topics.length;
  box.replaceChildren(h("legend", null, values && editing ? "What it is about (fixed while the service knows it)" : "What it is about"),
    ...facts.topics.map((name, i) => {
      const value = values ? values[i] : i === 0 ? 1 : 0;
      const output = h("output", null, Number(value).toFixed(2));
      const input = h("input", { type: "range", min: 0, max: 1, step: 0.01, value, "aria-label": name, disabled: Boolean(editing), oninput: (event) => say(output, Number(event.target.value).toFixed(2)) });
      return h("div", { class: "slider" }, h("span", null, name), input, output);
    }));
}

function edit(row) {
  editing = row;
  const form = $("#edit-form");
  form.reset();
  say($("#edit-title"), row ? "Edit the article" : "Add an article");
  say($("#edit-save"), row ? "Save" : "Add");
  say($("#edit-problem"), "");
  form.elements.id.readOnly = Boolean(row);
  if (row) for (const name of ["id", "title", "summary", "link", "picture"]) form.elements[name].value = row[name];
  form.elements.from.value = local(row?.from);
  form.elements.until.value = local(row?.until);
  sliders(row?.features);
  $("#edit").showModal();
}

if (facts.can_edit) {
  $("#add").addEventListener("click", () => edit(null));
  $("#edit-close").addEventListener("click", () => $("#edit").close());
  $("#edit-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = event.target.elements;
    const id = fields.id.value.trim();
    if (!id) return say($("#edit-problem"), "Give it an id: letters and digits that your site knows it by.");
    const inputs = [...$("#f-features").querySelectorAll("input")];
    let features = editing ? editing.features : inputs.length ? [...inputs.map((input) => Number(input.value)), 1] : null;
    if (!editing && inputs.length) {
      const sum = features.slice(0, -1).reduce((a, b) => a + b, 0);
      if (sum > 0) features = [...features.slice(0, -1).map((value) => Number((value / sum).toFixed(4))), 1];
    }
    const body = { title: fields.title.value, summary: fields.summary.value, link: fields.link.value, picture: fields.picture.value, from: global(fields.from.value), until: global(fields.until.value), features };
    $("#edit-save").disabled = true;
    try {
      await ask(path(id), { method: "PUT", body });
      $("#edit").close();
      await show();
    } catch (error) {
      say($("#edit-problem"), error.message);
    }
    $("#edit-save").disabled = false;
  });
  $("#retire-no").addEventListener("click", () => $("#retire").close());
  $("#retire-yes").addEventListener("click", () => ended(() => ask(path(editing.id), { method: "DELETE" })));
  $("#retire-pause").addEventListener("click", () => ended(() => ask(path(editing.id), { method: "PUT", body: { title: editing.title, summary: editing.summary, link: editing.link, picture: editing.picture, features: editing.features, from: editing.from && new Date(editing.from) < new Date() ? editing.from : null, until: new Date().toISOString() } })));
}

async function ended(work) {
  try {
    await work();
    $("#retire").close();
    await show();
  } catch (error) {
    say($("#retire-problem"), error.message);
  }
}

function retire(row) {
  editing = row;
  say($("#retire-name"), row.title || row.id);
  say($("#retire-problem"), "");
  $("#retire").showModal();
}

every(2, show);
