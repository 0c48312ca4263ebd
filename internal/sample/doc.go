// Package sample reads a few records out of a log: the oldest and the newest ones to try a query on, or pieces spread over
// a range to estimate what all of it holds.
package sample
