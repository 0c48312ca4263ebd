// Package generation is the record of the batch generations of lambda versions: the tables generation and
// generation_range, and the states a generation goes through.
package generation
