// Elements made of text: whatever an article, a visitor or an error says is shown, never run.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const $ = (selector) => document.querySelector(selector);

// Changes the text only if it differs: a screen reader is not told the same again.
export function say(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (value) => (value === null || value === undefined ? "–" : value >= 1e6 ? short.format(value) : whole.format(value));
export const signed = (value) => (value === null || value === undefined ? "–" : `${value > 0 ? "+" : value < 0 ? "−" : ""}${whole.format(Math.abs(value))}`);
export const percent = (value, digits = 2) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits).replace("-", "−")} %`);
export const change = (value) => (value === null || value === undefined ? "–" : `${value >= 0 ? "+" : "−"}${Math.abs(100 * value).toFixed(0)} %`);

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (value >= 1000 && place < units.length - 1) [value, place] = [value / 1000, place + 1];
  return `${value.toFixed(value < 10 && place ? 1 : 0)} ${units[place]}`;
}
