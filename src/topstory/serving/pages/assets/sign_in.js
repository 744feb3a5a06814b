// Exchanges a key for a session. The key is sent once, in a header, and kept nowhere.

import { $, say } from "./dom.js";

const form = $("#sign-in");
$("#key").focus();
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const key = $("#key").value.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) return say($("#problem"), key ? "This is not a key: it has characters that no key has." : "Enter your API key.");
  form.querySelector("button").disabled = true;
  try {
    const answer = await fetch("/studio/session", { method: "POST", headers: { Authorization: `Bearer ${key}` } });
    if (answer.ok) return location.assign(form.dataset.wanted.startsWith("/studio") ? form.dataset.wanted : "/studio");
    const body = await answer.json();
    say($("#problem"), answer.status === 401 ? "The service does not know this key." : body.error.message);
    $("#key").select();
  } catch {
    say($("#problem"), "The service does not answer. Is it running?");
  }
  form.querySelector("button").disabled = false;
});
