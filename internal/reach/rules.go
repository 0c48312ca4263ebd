package reach

import (
	"slices"
	"strings"
)

// Kind is the kind of an object that a SQL text uses.
type Kind string

// The kinds of object.
const (
	Relation Kind = "relation"
	Function Kind = "function"
	Type     Kind = "type"
	Other    Kind = "other"
)

// use is an object that a SQL text uses, with the facts that decide whether it is allowed.
type use struct {
	Kind       Kind
	Name, Word string
	Builtin    bool   // in pg_catalog
	Volatile   string // of a function: i, s or v
	Definer    bool   // SECURITY DEFINER function
	Of         string // relkind, prokind or typtype; for other objects the catalog
	Authorised bool   // the author may read or run it
	Trusted    bool   // its owner has all rights of the agent; for a table: no row security policy depends on the reader
	Equal      bool   // the author has all rights of the agent
}

// The reasons why a use is not allowed.
const (
	notOfTheJob = "which is not part of the job: this SQL reads the columns of the query and " +
		"no relation"
	notReadable = "which the role that deployed the job file may not read"
	byPolicy    = "whose rows or code depend on who reads: checks may read such relations " +
		"with a role of their own (checks.role)"
	notPure = "whose result depends on more than its arguments: functions must be IMMUTABLE, or " +
		"of those that docs/security.md lists"
	notExecutable  = "which the role that deployed the job file may not execute"
	runsAsOwner    = "a SECURITY DEFINER function, which runs with the rights of its owner"
	ownerUntrusted = "whose owner could change it to act with the rights of the agent: only a superuser or " +
		"a member of the agent's role may own it"
	notAllowed = "which this SQL may not use"
)

// refuses returns why a use is not allowed, or "".
func (l Limit) refuses(u use) string {
	if l.Check && u.Equal {
		return ""
	}
	switch u.Kind {
	case Relation:
		return l.relation(u)
	case Function:
		return l.function(u)
	case Type:
		return harmlessType(u)
	case Other:
		if u.Of == "pg_collation" || strings.HasPrefix(u.Of, "pg_ts_") {
			return ""
		}
	}
	return notAllowed
}

func (l Limit) relation(u use) string {
	switch {
	case !l.Check:
		return notOfTheJob
	case !u.Authorised:
		return notReadable
	case !u.Trusted:
		return byPolicy
	}
	return ""
}

func (l Limit) function(u use) string {
	switch {
	case u.Builtin && (u.Volatile == "i" || pure(u.Word) || l.Check && harmless(u.Word)):
		return ""
	case u.Builtin, u.Volatile != "i":
		return notPure
	case u.Definer:
		return runsAsOwner
	case !u.Authorised:
		return notExecutable
	case !u.Trusted:
		return ownerUntrusted
	}
	return ""
}

// harmlessType reports whether values of a type run no code of other users. Domains and ranges may run such code.
func harmlessType(u use) string {
	switch {
	case u.Builtin, u.Of == "e", u.Trusted && u.Authorised:
		return ""
	case u.Trusted:
		return notExecutable
	}
	return ownerUntrusted
}

// pure reports whether a STABLE function of PostgreSQL reads no tables, no files and no settings, except those of time
// zone, text search and output format.
func pure(name string) bool {
	return slices.Contains(stable, name) ||
		slices.ContainsFunc(stableFamilies, func(family string) bool { return strings.HasPrefix(name, family) })
}

// stableFamilies are the prefixes of the names of pure functions.
var stableFamilies = []string{"date_", "enum_", "json_", "jsonb_", "timestamp_", "timestamptz_"}

// stable are further pure functions.
var stable = []string{
	"age", "anytextcat", "array_to_json", "array_to_string", "concat", "concat_ws", "convert", "convert_from",
	"convert_to", "current_database", "current_schema", "current_user", "date", "extract", "format",
	"generate_series", "in_range", "interval_pl_timestamptz", "length", "make_timestamptz", "money", "now",
	"numeric", "overlaps", "pg_collation_for", "pg_column_size", "pg_has_role", "pg_typeof", "phraseto_tsquery",
	"plainto_tsquery", "quote_literal", "quote_nullable", "row_to_json", "session_user", "statement_timestamp",
	"textanycat", "time", "timestamp", "timestamptz", "timetz", "timezone", "to_char", "to_date", "to_json",
	"to_jsonb", "to_number", "to_timestamp", "to_tsquery", "to_tsvector", "transaction_timestamp",
	"ts_headline", "ts_match_tq", "ts_match_tt", "websearch_to_tsquery", "xml", "xml_is_well_formed",
}

// harmless reports whether a VOLATILE function of PostgreSQL gives a check no rights that its author lacks.
func harmless(name string) bool {
	switch name {
	case "clock_timestamp", "gen_random_uuid", "pg_sleep", "pg_sleep_for", "pg_sleep_until", "random", "timeofday":
		return true
	}
	return false
}
