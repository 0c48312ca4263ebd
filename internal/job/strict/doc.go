// Package strict reads YAML by a closed table of keys and reports every fault of a text with its place, cause and fix.
//
// A Value defines what is allowed at a place: a text, a list, a mapping with these keys. Read walks the document and
// the table side by side, stores what it finds in the table's targets, and collects faults instead of stopping at the
// first. It refuses YAML features beyond plain data (anchors, aliases, merge keys, tags, several documents): people,
// git and kappactl must read a job file the same way.
package strict
