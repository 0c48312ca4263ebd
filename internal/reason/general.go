package reason

// Codes of any subject.
const (
	CodeRefused Code = "refused" // a refusal of another package, in its words
	CodeError   Code = "error"   // an error of PostgreSQL, Kafka or the engine
	// CodeTriedAgain is work that failed and is tried again by itself.
	CodeTriedAgain Code = "tried_again"
)

func generalTexts() map[Code]string {
	return map[Code]string{
		CodeRefused: `{{text .cause}}`,
		CodeError:   `{{text .cause}}`,

		CodeTriedAgain: `{{text .cause}}; it is tried again`,
	}
}

// Refused carries the cause of a refusal that another package made.
func Refused(cause string) Reason { return Reason{CodeRefused, Args{"cause": cause}} }

// Error carries an error's text.
func Error(err error) Reason { return Reason{CodeError, Args{"cause": err.Error()}} }

// TriedAgain is work that failed for a cause and is tried again by itself.
func TriedAgain(cause string) Reason { return Reason{CodeTriedAgain, Args{"cause": cause}} }
