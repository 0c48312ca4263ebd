// Package scaffold writes the first job file for a topic from a sample of its records: columns with their types, a
// query, a test made of two records, and the view.
//
// A type is accepted only if the decoder of package format takes every sampled value as that type. The finished file is
// parsed, compiled and tested before it is returned, so that check and test accept it as written.
package scaffold
