// What needs the script is shown only where it runs.

for (const section of document.querySelectorAll("[data-needs-script]")) section.hidden = false;
startTable();
startAsking();

// On paper nothing can be unfolded.
window.addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

document.documentElement.dataset.ready = "true";
