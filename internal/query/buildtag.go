//go:build !duckdb_arrow

package query

// The SQL engine's Arrow interface is behind a build tag. Without it the compiler stops here, so that it says what to do.
var _ = build_with_the_tag_duckdb_arrow__export_GOFLAGS_tags_duckdb_arrow__or_use_make_test
