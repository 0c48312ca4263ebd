package kafkatest

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// WithACLs are the settings of a broker that allows nothing that no ACL allows, but for its plain listener.
func WithACLs() []string {
	return []string{
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users=User:ANONYMOUS",
	}
}

// Allow does what a command line of kafka-acls --add does.
func (s *Secured) Allow(t testing.TB, commandLine string) {
	t.Helper()
	b := kadm.NewACLs().ResourcePatternType(kadm.ACLPatternLiteral).AllowHosts("*")
	words := strings.Fields(commandLine)
	var ops []kadm.ACLOperation
	for i := 1; i < len(words); i++ {
		if words[i] == "--add" {
			continue
		}
		if words[i] == "--cluster" {
			b.Clusters()
			continue
		}
		if i+1 == len(words) {
			t.Fatalf("%s: %s has no value", commandLine, words[i])
		}
		value := words[i+1]
		switch words[i] {
		case "--bootstrap-server", "--command-config":
		case "--allow-principal":
			b.Allow(strings.Trim(value, "'"))
		case "--operation":
			op, err := kmsg.ParseACLOperation(value)
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, op)
		case "--topic":
			b.Topics(value)
		case "--group":
			b.Groups(value)
		case "--resource-pattern-type":
			b.ResourcePatternType(kadm.ACLPatternPrefixed)
		default:
			t.Fatalf("%s: %s is not understood", commandLine, words[i])
		}
		i++
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	made, err := kadm.NewClient(Client(t, s.Brokers)).CreateACLs(ctx, b.Operations(ops...))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range made {
		if m.Err != nil {
			t.Fatalf("%s: %v", commandLine, m.Err)
		}
	}
}
