package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
)

// catalogue holds DuckDB's description of its functions: by lower-case name, the kinds (scalar, aggregate, macro,
// table) and whether every overload is consistent.
type catalogue map[string]*function

type function struct {
	scalar, aggregate, macro bool
	unstable                 bool
}

// known holds the functions of every plain session of this process; nil until the first session was asked. Asking takes
// as long as starting the engine, and the answer is always the same, because it depends only on the linked engine. The
// value is never modified.
var known atomic.Pointer[engineFunctions]

type engineFunctions struct {
	functions catalogue
	unnesting []macro // macros that return several rows per input row although the query does not name unnest
}

// functions returns DuckDB's functions and macros. It asks s if no session of this process was asked before.
func (s *Session) functions(ctx context.Context) (*engineFunctions, error) {
	if f := known.Load(); f != nil {
		return f, nil
	}
	f, err := s.askFunctions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the engine's functions: %w", err)
	}
	known.Store(f)
	return f, nil
}

func (s *Session) askFunctions(ctx context.Context) (*engineFunctions, error) {
	rows, err := s.texts(ctx, `
		SELECT DISTINCT lower(function_name), function_type, coalesce(stability, ''),
			CASE WHEN unnests THEN CAST(to_json(parameters) AS VARCHAR) END, CASE WHEN unnests THEN macro_definition END
		FROM (SELECT *, coalesce(function_type = 'macro' AND macro_definition ILIKE '%unnest(%', false) AS unnests FROM duckdb_functions())
		WHERE function_type IN ('scalar', 'aggregate', 'macro')`)
	if err != nil {
		return nil, err
	}
	out := &engineFunctions{functions: catalogue{}}
	for _, r := range rows {
		name, kind, stability := r[0], r[1], r[2]
		f := out.functions[name]
		if f == nil {
			f = &function{}
			out.functions[name] = f
		}
		switch kind {
		case "scalar":
			f.scalar = true
		case "aggregate":
			f.aggregate = true
		case "macro":
			f.macro = true
		}
		f.unstable = f.unstable || (kind != "macro" && stability != "CONSISTENT")
		if definition := r[4]; definition != "" {
			m := macro{name: name, definition: definition}
			if err := json.Unmarshal([]byte(r[3]), &m.parameters); err != nil {
				return nil, fmt.Errorf("the parameters of %s: %w", name, err)
			}
			out.unnesting = append(out.unnesting, m)
		}
	}
	return out, nil
}

func (c catalogue) aggregate(name string) bool { return c[name] != nil && c[name].aggregate }

// The fixes for functions that a query may not use.
const (
	cureClock   = "use a time of the record: _timestamp, or a declared time column"
	cureRandom  = "derive it from the record: md5(concat_ws('/', _topic, _partition, _offset))"
	cureSession = "write the value into the query"
	cureRecord  = "use values of the record only"
	cureHash    = "use md5(x) or sha256(x): the values of hash() change between releases of the engine"
	cureText    = "compare plain text, or lower(x)"
)

// denied returns the fix for a function that is not allowed although DuckDB may call it consistent: its value depends
// on the clock, the session, the machine or DuckDB's release.
func denied(name string) (cure string, is bool) {
	switch name {
	case "now", "today", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp",
		"current_localtime",
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
	case strings.HasPrefix(name, ownPrefix):
		return cureRecord, true
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
	if name == "age" && arguments == 1 { // relative to today
		return cureClock, true
	}
	return denied(name)
}

// bareKeyword reports whether SQL allows the function without parentheses. The parser returns it as a column name.
func bareKeyword(name string) bool {
	switch name {
	case "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user",
		"current_role",
		"session_user", "user", "current_catalog", "current_schema":
		return true
	}
	return false
}
