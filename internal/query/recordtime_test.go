package query

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func TestKeepGoesByTheRecordOnlyWhereTheKeyIsItsTimestampRoundedDown(t *testing.T) {
	for key, want := range map[string]bool{
		"date_trunc('day', _timestamp)":                 true,
		"date_trunc('hour', source._timestamp)":         true,
		"time_bucket(INTERVAL '5 minutes', _timestamp)": true,
		"CAST(_timestamp AS DATE)":                      true,
		"CAST(date_trunc('day', _timestamp) AS DATE)":   true,
		"_timestamp":                 true,
		"departs":                    false,
		"date_trunc('day', departs)": false,
		"date_trunc('day', _timestamp + INTERVAL '7 days')":          false,
		"CASE WHEN departs IS NULL THEN _timestamp ELSE departs END": false,
	} {
		for _, from := range []string{"source", "(SELECT departs, departs AS _timestamp FROM source) AS source"} {
			spec := &job.Spec{
				Job: "bookings", Query: "SELECT " + key + " AS at, count(*) AS n FROM " + from + " GROUP BY ALL",
				Source: job.Source{Topics: []string{"bookings"}, Format: "json", Columns: []job.Column{{Name: "departs", Type: "timestamp with time zone"}}},
				Serve:  job.Serve{View: job.ViewName{Schema: "public", Name: "bookings"}, Keep: 24 * time.Hour},
			}
			c, err := Compile(t.Context(), spec)
			if err != nil {
				t.Fatalf("%s from %s: %v", key, from, err)
			}
			if got := c.Layout.Keep.ByRecord; got != (want && from == "source") {
				t.Errorf("%s from %s: %t", key, from, got)
			}
		}
	}
}
