// Package report makes the report of one deployment: what was planned, how it went, what was checked and who did it, as one JSON
// document and as one HTML page that needs no network and no script. It reads nothing: what is in a report is given to it.
package report
