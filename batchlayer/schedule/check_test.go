package schedule_test

import (
	"strings"
	"testing"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
)

func jobWith(t *testing.T, schedule string) *job.Spec {
	t.Helper()
	spec, err := job.Parse("job.yaml", []byte(`job: pageviews
source: {topics: [pageviews], columns: {url: text}}
query: SELECT url, count(*) AS views FROM source GROUP BY url
serve: {view: public.pageviews}
batch:
  schedule: `+schedule+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestAScheduleOfAJobFileIsRefusedAtItsPlaceInTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"0 0 30 2 *":     "job.yaml:6:17: batch.schedule: no year has such a day",
		`"0 30 2 * * *"`: "job.yaml:6:25: batch.schedule: 6 fields, not five",
		"'TZ=UTC'":       "job.yaml:6:14: batch.schedule: a time zone in the expression",
		"'@every 0s'":    "job.yaml:6:21: batch.schedule: @every 0s is too often",
	} {
		err := schedule.Check(jobWith(t, text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func TestAScheduleThatComesIsTaken(t *testing.T) {
	for _, text := range []string{"0 2 * * *", "'@every 6h'", "'@daily'", `"0 0 13 * 5"`} {
		if err := schedule.Check(jobWith(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := schedule.Check(&job.Spec{}); err != nil {
		t.Errorf("a job without batch: %v", err)
	}
}
