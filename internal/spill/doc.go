// Package spill makes the folder in which a process keeps what does not fit in memory, and removes the folders of
// processes that ended.
package spill
