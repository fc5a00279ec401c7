// Log lines as they are written.

import { call, follow } from "./server.js";
import { element, failed, notice } from "./dashboard.js";

const MAX_LINES = 1000;
const $ = (id) => document.getElementById(id);
const [log, state] = [$("log"), $("log-state")];
let stream;

function path() {
  const query = new URLSearchParams({ follow: "true" });
  for (const id of ["kind", "level", "site", "contains"]) if ($(id).value) query.set(id, $(id).value);
  return `/api/logs?${query}`;
}

function say(name, text) {
  state.dataset.state = name;
  state.textContent = text;
}

function add({ kind, line, lost }) {
  if (lost) log.append(element("p", { className: "fair" }, `▲ ${lost} lines were lost, because they came too fast.`));
  const level = kind === "error" ? line.split(/\s+/)[1]?.toLowerCase() : "access";
  log.append(element("p", { className: `level-${level}` }, line));
  while (log.childElementCount > MAX_LINES) log.firstChild.remove();
  if ($("follow").checked) log.scrollTop = log.scrollHeight;
  say("live", "New lines appear as they are written.");
}

function start() {
  stream?.close();
  log.replaceChildren();
  say("loading", "Loading the log…");
  let timer;
  stream = follow(path(), { message: add }, (now) => {
    clearTimeout(timer);
    if (now === "lost") return say("disconnected", "✖ Not connected: new lines are missing. Trying again…");
    // After an interruption, the recent lines are sent again.
    log.replaceChildren();
    timer = setTimeout(() => log.childElementCount || say("empty", "No line matches yet. New ones appear here."), 300);
  });
}

let typing;
$("log-filter").addEventListener("input", async ({ target }) => {
  if (target.id === "follow" && target.checked) log.scrollTop = log.scrollHeight;
  if (["kind", "level"].includes(target.id)) start();
  if (["site", "contains"].includes(target.id)) clearTimeout(typing), (typing = setTimeout(start, 300));
  if (target.id === "written") {
    try {
      const { level } = await call("PUT", "/api/log-level", { level: target.value });
      target.dataset.was = level;
      notice("good", `The server writes messages of the level ${level} and above until the next reload.`);
    } catch (problem) {
      target.value = target.dataset.was;
      failed(problem);
    }
  }
});
$("log-filter").addEventListener("submit", (event) => event.preventDefault());
// The page of a website links to its log.
$("site").value = new URLSearchParams(location.search).get("site") ?? "";
$("log-filter").dataset.ready = "";
start();
