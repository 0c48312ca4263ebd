// Package lookup reads rows of a view as an application would: chosen by values of its columns, in the order of its
// keys.
package lookup
