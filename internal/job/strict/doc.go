// Package strict reads YAML by a closed table of keys and names every fault of a text with its place, cause and cure.
//
// A Value says what may stand somewhere: a text, a list, a mapping with these keys. Read walks the document and the table
// side by side, puts what it finds where the table says, and collects faults instead of stopping at the first. What YAML
// offers beyond plain data (anchors, aliases, merge keys, tags, several documents) is refused: a job file has to read
// the same to a person, to git and to us.
package strict
