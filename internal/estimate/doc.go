// Package estimate tells what a replay will cost: records, rows, disk, time and dead letters, measured on a sample. It
// also judges whether that fits on PostgreSQL's disk, and warns of what will go wrong.
package estimate
