package config_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/config"
)

func TestSecretsAreKnownByNameAndByValue(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"KAPPACTL_DSN": "postgres://u:x@h/d", "PGPASSWORD": "sesame", "KAPPACTL_BROKERS": "b:9092"}[name]
	}
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"TOPIC", "pageviews", false},
		{"TOPIC", "", false},
		{"KAPPACTL_BROKERS", "b:9092", false},
		{"KAPPACTL_DSN", "", true},
		{"PGPASSWORD", "", true},
		{"kappactl_kafka_sasl_password", "", true},
		{"KAPPACTL_WEBHOOK_SECRET", "", true},
		{"DB_PASSWORD", "", true},
		{"github_token", "", true},
		{"TOPIC", "sesame", true},
		{"VIEW", "postgres://u:x@h/d", true},
		{"NOTE", "prefix-sesame-suffix", true},
		{"DB_URL", "postgres://app:hunter2@h/db", true},
		{"DB_URL", "mysql://app:hunter2@h/db", true},
		{"DB", "host=h password=hunter2", true},
		{"DB", "postgres://app@h/db", false},
		{"PAGE", "https://example.com/a?b=c", false},
		{"maps_api_key", "", true},
		{"WHERE", "url LIKE 'http://%' AND user <> '@a'", false},
	} {
		if got := config.IsSecret(c.name, c.value, env); got != c.want {
			t.Errorf("%s=%s: %t", c.name, c.value, got)
		}
	}
}
