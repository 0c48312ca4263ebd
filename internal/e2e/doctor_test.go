package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestDoctorComparesTheLogWithTheLiveVersion: what a new version could not replay, what this one has missed, and a topic that is
// gone or another one; each with what to do.
func TestDoctorComparesTheLogWithTheLiveVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 1, nil)
	w.produceHits(topic, 0, 100)
	w.exec(`CREATE SCHEMA "My.Schema "`)
	a := w.serve()
	w.ok("deploy", w.file("v1.yaml", strings.Replace(fmt.Sprintf(lookedAtJob, topic, ""), "view: public.clicks", `view: '"My.Schema ".clicks'`, 1)))
	log := func(code int, health, detail string) {
		t.Helper()
		var r struct {
			OK       bool
			Findings []struct {
				Check, Health, Detail string
				Next                  *string
			}
		}
		w.decode(&r, w.code(code, "doctor", "-o", "json").stdout)
		for _, f := range r.Findings {
			if (f.Health == "ok") != (f.Next == nil) {
				t.Errorf("a finding without a cure, or a cure without a finding: %+v", f)
			}
			if f.Check == "schema My.Schema " && f.Health != "ok" {
				t.Errorf("%+v", f)
			}
			if f.Check == "log of clicks" {
				if f.Health != health || !strings.Contains(f.Detail, detail) {
					t.Errorf("%s: %s, want %s: %s", f.Health, f.Detail, health, detail)
				}
				return
			}
		}
		t.Errorf("nothing is said of the log: %+v", r)
	}
	log(0, "ok", "holds all that clicks/v1 covers")
	kafkatest.DeleteRecords(t, w.brokers, topic, 0, 60)
	log(0, "warning", "a new version would cover less than clicks/v1: 60 offsets of 1 partition")
	a.stop()
	w.produceHits(topic, 100, 50)
	kafkatest.DeleteRecords(t, w.brokers, topic, 0, 120)
	w.serve()
	log(1, "failed", "clicks/v1 is at offset 100 of "+topic+"/0, and the log begins at 120: records are missing")
	kafkatest.DeleteTopic(t, w.brokers, topic)
	log(1, "failed", "topic "+topic+" is gone")
	kafkatest.Topic(t, w.brokers, topic, 1, nil)
	log(1, "failed", "topic "+topic+" was deleted and made again: clicks/v1 reads the one that is gone")
}
