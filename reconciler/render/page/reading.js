// What a reader does with a page that is complete without it: filter and sort rows, unfold what a link or a printer needs.

const unfold = (folded) => {
  for (let place = folded; place; place = place.parentElement) if (place.tagName === "DETAILS") place.open = true;
};

function unfoldTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target) return;
  unfold(target);
  target.scrollIntoView();
}

function startFilter(form) {
  const words = form.querySelector("input");
  const verdict = form.querySelector("select");
  const status = form.parentElement.querySelector("[role=status]");
  const rows = [...form.parentElement.querySelectorAll("[data-find]")];
  const apply = () => {
    const wanted = words.value.toLowerCase().split(" ").filter(Boolean);
    let shown = 0;
    for (const one of rows) {
      const text = one.textContent.toLowerCase();
      one.hidden = (verdict.value !== "" && one.dataset.find !== verdict.value) || !wanted.every((word) => text.includes(word));
      if (!one.hidden && one.tagName === "TR") shown += 1;
    }
    const total = rows.filter((one) => one.tagName === "TR").length;
    status.textContent = shown === total ? "" : `${shown.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} rows`;
  };
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
}

function startSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const valueOf = (row, at) => {
    const cell = row.cells[at];
    return cell.dataset.sort === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.sort);
  };
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : rows[0].cells[at].dataset.sort !== undefined;
      for (const one of heads) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      rows.sort((a, b) => (down ? -1 : 1) * order(valueOf(a, at), valueOf(b, at)));
      body.append(...rows);
    });
  });
}

for (const form of document.querySelectorAll("form.filter")) startFilter(form);
for (const table of document.querySelectorAll("table.sortable")) startSorting(table);
window.addEventListener("hashchange", unfoldTarget);
if (location.hash.length > 1) unfoldTarget();

// On paper nothing can be unfolded.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
document.documentElement.dataset.ready = "true";
