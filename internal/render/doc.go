// Package render turns values into text for people and for scripts: tables (aligned on a terminal, tab-separated in a
// pipe), JSON, counts, rates, bytes and durations, colour. It is pure: it knows no command and reads no environment.
package render
