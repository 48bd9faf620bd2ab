// Browsers refuse modules, models and wasm of a page that is opened as a file. This script is no
// module, so that it can say so.
if (location.protocol === 'file:') {
  const alert = document.getElementById('alert');
  alert.hidden = false;
  alert.textContent = 'This page has to come from a file server. Run "python3 -m http.server" in ' +
      'its folder, and open http://localhost:8000.';
}
