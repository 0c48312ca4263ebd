// Package report renders the report of one deployment as a JSON document and as an HTML page that needs no network and
// no script: the plan, the progress, the checks and who did what. It does no I/O; the caller supplies the data.
package report
