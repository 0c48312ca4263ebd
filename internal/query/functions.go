package query

import (
	"context"
	"strings"
)

// catalogue is what the engine says about its functions: by lower-case name, the kinds (scalar, aggregate, macro, table)
// and whether any form of it is not consistent.
type catalogue map[string]*function

type function struct {
	scalar, aggregate, macro bool
	unstable                 bool
}

func (s *Session) catalogue(ctx context.Context) (catalogue, error) {
	rows, err := s.texts(ctx, `
		SELECT DISTINCT lower(function_name), function_type, coalesce(stability, '')
		FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'macro')`)
	if err != nil {
		return nil, err
	}
	out := catalogue{}
	for _, r := range rows {
		f := out[r[0]]
		if f == nil {
			f = &function{}
			out[r[0]] = f
		}
		switch r[1] {
		case "scalar":
			f.scalar = true
		case "aggregate":
			f.aggregate = true
		case "macro":
			f.macro = true
		}
		f.unstable = f.unstable || (r[1] != "macro" && r[2] != "CONSISTENT")
	}
	return out, nil
}

func (c catalogue) aggregate(name string) bool { return c[name] != nil && c[name].aggregate }

// The cures of functions that a query may not use.
const (
	cureClock   = "use a time of the record: _timestamp, or a declared time column"
	cureRandom  = "derive it from the record: md5(concat_ws('/', _topic, _partition, _offset))"
	cureSession = "write the value into the query"
	cureRecord  = "use values of the record only"
	cureHash    = "use md5(x) or sha256(x): the values of hash() change between releases of the engine"
	cureText    = "compare plain text, or lower(x)"
)

// denied gives the cure for a function that must not be used although the engine may call it consistent: its
// value depends on the clock, the session, the machine or the release of the engine.
func denied(name string) (cure string, is bool) {
	switch name {
	case "now", "today", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_localtime",
		"current_localtimestamp", "get_current_time", "get_current_timestamp", "transaction_timestamp", "ago",
		"pg_conf_load_time", "pg_postmaster_start_time":
		return cureClock, true
	case "random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval", "currval", "txid_current",
		"current_connection_id", "current_transaction_id", "current_query_id":
		return cureRandom, true
	case "getvariable", "current_setting", "version", "current_user", "current_role", "session_user", "user", "getenv",
		"current_catalog", "current_database", "current_schema", "current_schemas", "current_query", "in_search_path",
		"get_block_size", "inet_client_addr", "inet_client_port", "inet_server_addr", "inet_server_port":
		return cureSession, true
	case "hash", "create_sort_key", "alias", "stats", "vector_type", "constant_or_null":
		return cureHash, true
	case "error", "sleep_ms", "pg_sleep", "write_log", "json_serialize_plan", "json_serialize_sql", "json_deserialize_sql",
		"parse_duckdb_log_message", "read_text", "read_blob", "query", "query_table", "combine", "finalize":
		return cureRecord, true
	case "icu_sort_key":
		return cureText, true
	}
	switch {
	case strings.HasPrefix(name, "icu_collate_"):
		return cureText, true
	case strings.HasPrefix(name, "has_") && strings.HasSuffix(name, "_privilege"), strings.HasPrefix(name, "pg_get_"),
		strings.HasPrefix(name, "pg_") && strings.HasSuffix(name, "_is_visible"):
		return cureSession, true
	}
	return "", false
}

// deniedCall is denied for a call with a number of arguments.
func deniedCall(name string, arguments int) (cure string, is bool) {
	if name == "age" && arguments == 1 { // counts from today
		return cureClock, true
	}
	return denied(name)
}

// bareKeyword says that SQL writes the function without parentheses; the parser gives it as a column name.
func bareKeyword(name string) bool {
	switch name {
	case "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user", "current_role",
		"session_user", "user", "current_catalog", "current_schema":
		return true
	}
	return false
}
