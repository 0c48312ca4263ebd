package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// maxKeyBytes is the largest size of one key as text, in bytes. PostgreSQL's b-tree rows hold at most 2,704.
const maxKeyBytes = 2000

// Land returns PARTIAL as speedlayer runs it over the columns Fields: columns in the order of Layout.StagedColumns
// (keys, states), each cast to text in PostgreSQL's input syntax. Text[] parameters accept these texts unchanged, COPY
// after escaping them. The casts run over groups, not records.
func (c *Compiled) Land() string {
	if c.rows != nil {
		return c.landRows()
	}
	types, texts := make(map[string]string, len(c.outputs)), make(map[string]string, len(c.outputs))
	for _, o := range c.outputs {
		types[o.name], texts[o.name] = o.typ, o.write("p."+ident(o.name), o.typ)
	}
	var items []string
	guard := keyGuard(c.Layout.Keys, types)
	for _, k := range c.Layout.Keys {
		text := texts[k.Name]
		if guard != "" {
			text, guard = fmt.Sprintf("CASE WHEN %s THEN error('key_too_long: the group key holds more than %d bytes') "+
				"ELSE %s END", guard, maxKeyBytes, text), ""
		}
		items = append(items, text+" AS "+ident(k.Name))
	}
	for _, s := range c.Layout.States {
		items = append(items, texts[s.Name]+" AS "+ident(s.Name))
	}
	return c.prelude() + "SELECT " + strings.Join(items, ", ") + " FROM (" + c.quick + ") AS p"
}

// prelude adds the declared types and the place in the log to source, or is empty if there is nothing to add. Readers
// may supply uuid and json columns as text.
func (c *Compiled) prelude() string {
	var casts []string
	for _, col := range c.source {
		if slices.Contains(c.Fields, col.name) && (col.typ == "UUID" || col.typ == "JSON") {
			casts = append(casts, fmt.Sprintf("CAST(%s AS %s) AS %s", ident(col.name), col.typ, ident(col.name)))
		}
	}
	items := "*"
	if len(casts) > 0 {
		items += " REPLACE (" + strings.Join(casts, ", ") + ")"
	}
	if c.places {
		items += ", " + placeColumns(c.oneTopic)
	}
	if c.rows != nil && c.rows.latest() {
		items += ", " + tombstoneColumn + " AS " + ident(deletedAlias)
	}
	if items == "*" {
		return ""
	}
	return fmt.Sprintf("WITH %s AS (SELECT %s FROM %s) ", SourceRelation, items, SourceRelation)
}

// keyGuard returns the condition under which the key's texts are too long for an index, or "".
func keyGuard(keys []job.KeyColumn, types map[string]string) string {
	var sizes []string
	for _, k := range keys {
		value := "p." + ident(k.Name)
		switch duck := types[k.Name]; {
		case duck == "VARCHAR":
			sizes = append(sizes, "coalesce(strlen("+value+"), 0)")
		case duck == "BLOB":
			sizes = append(sizes, "coalesce(octet_length("+value+"), 0)")
		case strings.HasSuffix(duck, "]"):
			sizes = append(sizes, "coalesce(strlen(CAST("+value+" AS VARCHAR)), 0)")
		}
	}
	if len(sizes) == 0 {
		return ""
	}
	return strings.Join(sizes, " + ") + fmt.Sprintf(" > %d", maxKeyBytes)
}
