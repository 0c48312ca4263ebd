// Package render formats values for people and for programs: tables (aligned on a terminal, tab-separated in a pipe),
// JSON, counts, rates, sizes, durations and colours. Its functions are pure: they know no command and read no
// environment.
package render
