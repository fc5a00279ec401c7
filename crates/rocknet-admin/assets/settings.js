// Editor of the configuration as text, checked while it is typed.

import { call } from "./server.js";
import { element, failed, notice, saved } from "./dashboard.js";

const CHECK_AFTER_MS = 400;
const $ = (id) => document.getElementById(id);
const own = $("settings").dataset.file;
const [form, text, lines, verdict, list] = ["settings", "text", "lines", "verdict", "findings"].map($);
let loaded = text.value;
let [timer, round] = [undefined, 0];

/** Shows the numbers of the lines, with a mark at those with findings. */
function number(findings = []) {
  const marks = new Map(findings.filter((one) => one.file === own).map((one) => [one.line, one.is_error ? "✖" : "▲"]));
  const all = text.value.split("\n").map((_, index) => `${marks.get(index + 1) ?? ""}${index + 1}`);
  lines.textContent = all.join("\n");
  lines.scrollTop = text.scrollTop;
}

/** Selects a line of the text. */
function select(line) {
  const before = text.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const end = text.value.indexOf("\n", before);
  text.focus();
  text.setSelectionRange(before, end < 0 ? text.value.length : end);
  text.scrollTop = (line - 5) * parseFloat(getComputedStyle(text).lineHeight);
}

function say(name, words) {
  verdict.dataset.state = name;
  verdict.textContent = words;
}

function item({ is_error, message, help, line, file }) {
  const sign = is_error ? "✖ Error" : "▲ Warning";
  const made = element("li", { className: is_error ? "bad" : "fair" });
  if (file && file !== own) {
    const href = `/settings?file=${encodeURIComponent(file)}#line-${line}`;
    made.append(element("a", { href }, `${file}, line ${line}`), " ");
  } else if (line) made.append(element("button", { type: "button", className: "quiet", onclick: () => select(line) }, `Line ${line}`), " ");
  made.append(`${sign}: ${message}`);
  if (help) made.append(element("small", {}, help));
  return made;
}

async function check() {
  const begun = ++round;
  say("loading", "Checking…");
  try {
    const { is_valid, findings } = await call("POST", "/api/config/check", { text: text.value, file: own });
    // A later check has begun.
    if (begun !== round) return;
    number(findings);
    list.replaceChildren(...findings.map(item));
    const change = text.value === loaded ? "" : " It is not saved yet.";
    if (is_valid) say("valid", `● The server accepts this text.${change}`);
    else say("invalid", `✖ The server refuses this text: errors: ${findings.filter((one) => one.is_error).length}.`);
  } catch (problem) {
    if (begun === round) say("unknown", `▲ The text could not be checked: ${problem.message}`);
  }
}

async function save() {
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  const sent = text.value;
  try {
    const reply = await call("PUT", "/api/config", { text: sent, revision: form.dataset.revision, file: own });
    form.dataset.revision = reply.revision;
    loaded = sent;
    $("not-loaded")?.remove();
    saved(reply.message, reply);
    check();
  } catch (problem) {
    if (problem.status !== 409) return failed(problem), check();
    const again = ["Copy my text and load the file again", () => navigator.clipboard.writeText(sent).then(() => (loaded = sent, location.reload()), failed)];
    notice("bad", problem.message, undefined, again);
  } finally {
    form.ariaBusy = "false";
  }
}

text.addEventListener("input", () => {
  number();
  clearTimeout(timer);
  timer = setTimeout(check, CHECK_AFTER_MS);
});
text.addEventListener("scroll", () => (lines.scrollTop = text.scrollTop));
form.addEventListener("submit", (event) => (event.preventDefault(), save()));
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s") event.preventDefault(), save();
});
form.querySelector("[data-do=revert]").addEventListener("click", () => {
  text.value = loaded;
  number();
  check();
});
addEventListener("beforeunload", (event) => text.value !== loaded && event.preventDefault());
// A link leads to a line.
const showLine = () => {
  const line = /^#line-(\d+)$/.exec(location.hash)?.[1];
  if (line) select(Number(line));
};
addEventListener("hashchange", showLine);
form.dataset.ready = "";
number();
check();
showLine();
