// Package sample reads a few records from a log: the oldest and newest ones to test a query on, or pieces spread over a
// range to estimate the contents of the whole range.
package sample
