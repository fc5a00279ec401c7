// Charts and figures of the overview, changed in place once a second.

const SPAN_MS = 120_000;
const [WIDTH, HEIGHT] = [240, 60];
const samples = [];

const count = (number) => Math.round(number).toLocaleString("en");
const rate = (number) => (number < 10 ? number.toFixed(1) : count(number));
const time = (us) => (us == null ? "–" : us < 1000 ? `${us} µs` : us < 1e6 ? `${(us / 1000).toFixed(1)} ms` : `${(us / 1e6).toFixed(1)} s`);
function bytes(number) {
  if (number < 1024) return `${number} B`;
  const unit = Math.min(Math.floor(Math.log2(number) / 10), 6);
  return `${(number / 2 ** (10 * unit)).toFixed(1)} ${"KMGTPE"[unit - 1]}iB`;
}
function duration(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = Math.max(parts.findIndex(([length]) => seconds >= length), 0);
  if (seconds < 1) return "0 s";
  const [length, name] = parts[at];
  const below = parts[at + 1];
  const rest = below ? Math.floor((seconds % length) / below[0]) : 0;
  return `${Math.floor(seconds / length)} ${name}${rest ? ` ${rest} ${below[1]}` : ""}`;
}

// Each chart: its values, the words for one, and the least value at its top.
const CHARTS = {
  requests: { values: [(one) => one.requests], words: rate, top: 1 },
  latency: { values: [(one) => one.p50_us, (one) => one.p99_us], words: time, top: 100 },
  cpu: { values: [(one) => one.cpu], words: (number) => `${number.toFixed(1)} %`, top: 5 },
  memory: { values: [(one) => one.memory], words: bytes, top: 1 << 20 },
  connections: { values: [(one) => one.connections], words: count, top: 4 },
};

function draw() {
  const end = samples.at(-1)?.at_ms;
  for (const figure of document.querySelectorAll("[data-chart]")) {
    const { values, words, top } = CHARTS[figure.dataset.chart];
    const kept = values.map((value) => samples.map((one) => [one.at_ms, value(one)]).filter(([, number]) => number != null));
    const highest = Math.max(top, ...kept.flat().map(([, number]) => number));
    for (const [index, line] of figure.querySelectorAll("polyline").entries()) {
      const points = kept[index].map(([at, number]) => {
        const x = WIDTH - ((end - at) / SPAN_MS) * WIDTH;
        return `${x.toFixed(1)},${(HEIGHT - 1 - (number / highest) * (HEIGHT - 4)).toFixed(1)}`;
      });
      line.setAttribute("points", points.join(" "));
    }
    if (!samples.length) continue;
    const now = values.map((value) => value(samples.at(-1))).map((number) => (number == null ? "–" : words(number))).join(" · ");
    set(figure.querySelector("[data-now]"), now);
    set(figure.querySelector("[data-max]"), `up to ${words(highest)}`);
    figure.ariaBusy = "false";
    const label = figure.querySelector("figcaption").firstChild.data.trim();
    figure.querySelector("svg").setAttribute("aria-label", `${label}: now ${now}, highest ${words(highest)}`);
  }
}

function set(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

function add(sample) {
  samples.push(sample);
  while (samples[0].at_ms < sample.at_ms - SPAN_MS) samples.shift();
}

document.addEventListener("history", ({ detail }) => {
  samples.length = 0;
  detail.forEach(add);
  draw();
});

document.addEventListener("sample", ({ detail: { status, sample } }) => {
  if (sample && samples.at(-1)?.at_ms !== sample.at_ms) add(sample), draw();
  const { responses, cache, response_cache: stored } = status;
  const served = stored.hits + stored.stale + stored.collapsed;
  const asked = served + stored.misses;
  const lookups = cache.hits + cache.misses;
  const fields = {
    requests: count(status.requests),
    sent: bytes(status.bytes_sent),
    good: count(responses["2xx"] + responses["3xx"]),
    client: count(responses["4xx"]),
    server: count(responses["5xx"]),
    stored: `${bytes(stored.bytes)} in memory${stored.disk ? `, ${bytes(stored.disk.bytes)} on disk` : ""}`,
    served: asked ? `${((served / asked) * 100).toFixed(1)} % of ${count(asked)} requests` : "–",
    limited: count(status.limited.refused),
    bans: count(status.bans),
    hits: lookups ? `${((cache.hits / lookups) * 100).toFixed(1)} %` : "–",
    uptime: duration(status.uptime_s),
    reload: status.last_reload_error ? `The last reload changed nothing:\n${status.last_reload_error}` : "",
  };
  for (const [name, text] of Object.entries(fields)) set(document.querySelector(`[data-field=${name}]`), text);
  const body = document.getElementById("sites");
  document.getElementById("no-sites").hidden = status.durations.length > 0;
  for (const [index, site] of status.durations.entries()) {
    const row = body.rows[index] ?? body.insertRow();
    while (row.cells.length < 4) {
      const cell = document.createElement(row.cells.length ? "td" : "th");
      row.cells.length ? (cell.className = "number") : (cell.scope = "row");
      row.append(cell);
    }
    const words = [site.site, count(site.responses), time(site.p50_us), time(site.p99_us)];
    words.forEach((text, column) => set(row.cells[column], text));
  }
  while (body.rows.length > status.durations.length) body.deleteRow(-1);
});
