// What every page of the studio has: requests, live updates, and what to say when they fail.

import { $, h, say } from "../dom.js";

export const facts = JSON.parse($("#facts").textContent);

export class Refused extends Error {
  constructor(status, reason, message) {
    super(message);
    Object.assign(this, { status, reason });
  }
}

export async function ask(path, { method = "GET", body, headers = {} } = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: { "X-Topstory-Studio": "1", ...(method === "GET" ? {} : { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "unreachable", "The service does not answer. Is it running?");
  }
  const text = await answer.text();
  const value = text ? JSON.parse(text) : null;
  if (answer.ok) return value;
  if (answer.status === 401) signInAgain();
  throw new Refused(answer.status, value?.error?.reason, value?.error?.message ?? `status ${answer.status}`);
}

const inPool = (path) => `${path}${path.includes("?") ? "&" : "?"}pool=${encodeURIComponent(facts.pool)}`;
export const get = (path) => ask(inPool(path));
export const post = (path, body) => ask(inPool(path), { method: "POST", body });

function link(state, words) {
  $("#link").dataset.state = state;
  say($("#link-words"), words);
}

function signInAgain() {
  $("#problems").replaceChildren(h("p", { class: "banner" }, "Your session has ended. ", h("a", { href: location.href }, "Sign in again")));
  link("bad", "signed out");
}

export function failed(error) {
  if (error.status === 401) return;
  $("#problems").replaceChildren(h("p", { class: "banner" }, error.message));
}

// Nothing is shown before there is something to say: so nothing moves.
const shown = () => delete $("#main").dataset.waiting;

export const cleared = () => $("#problems").replaceChildren();

// Calls `show` with the state of the pool, now and whenever it changes.
export function live(show) {
  let heard = Date.now();
  let source;
  function hear(state) {
    heard = Date.now();
    link("good", "live");
    cleared();
    show(state);
    shown();
  }
  function connect() {
    source?.close();
    source = new EventSource(inPool("/studio/stream"));
    source.onmessage = (event) => hear(JSON.parse(event.data));
    source.addEventListener("refused", askInstead);
    // The browser tries again by itself, but gives up after an answer that is no stream.
    source.onerror = () => source.readyState === EventSource.CLOSED && askInstead();
  }
  // An ordinary request has the state, or says in words why there is none.
  async function askInstead() {
    source.close();
    try {
      hear(await get("/studio/data/now"));
    } catch (error) {
      shown();
      if (error.status === 401) return;
      link("bad", "no answer");
      failed(error);
    }
    setTimeout(connect, 2000);
  }
  connect();
  setInterval(() => {
    // Once, not every second: a screen reader says it each time.
    if (document.hidden || $("#link").dataset.state === "bad" || Date.now() - heard < 5000) return;
    link("bad", `no answer since ${new Date(heard).toLocaleTimeString("en", { hour12: false })}`);
    failed(new Refused(0, "stale", "The service does not answer. What you see is what it said last; this page goes on by itself when it is back."));
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) source.close();
    else if (source.readyState === EventSource.CLOSED) { heard = Date.now(); connect(); }
  });
}

// Calls a function now and every few seconds, while the page is visible.
export function every(seconds, work) {
  const run = async () => {
    if (document.hidden) return;
    try {
      await work();
      if ($("#link").dataset.state !== "good") { link("good", "live"); cleared(); }
    } catch (error) {
      if (error.status === 0) link("bad", "no answer");
      failed(error);
    }
    shown();
  };
  run();
  setInterval(run, 1000 * seconds);
}

$("#pool")?.addEventListener("change", (event) => event.target.form.submit());

// A page of the documentation: a link if the service knows where it is published.
const docs = (page) => (facts.docs ? h("a", { href: facts.docs.replace(/\/*$/, "/") + page }, page.replace(/\/$/, "")) : h("code", null, `docs/${page}`));
for (const each of document.querySelectorAll("[data-docs]")) each.replaceChildren(docs(each.dataset.docs));

export function alarms(found) {
  const box = $("#alarms");
  const text = JSON.stringify(found);
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  box.replaceChildren(...found.map((each) => h("p", { class: `alarm ${each.kind}` }, h("strong", null, each.kind === "bad" ? "Alarm" : "Notice"), " ", each.words, " ", h("span", { class: "muted" }, "See ", docs(each.page)))));
}

export const factList = (pairs) => h("dl", null, pairs.map(([name, value, kind]) => h("div", { class: kind }, h("dt", null, name), h("dd", { class: "num" }, value))));
