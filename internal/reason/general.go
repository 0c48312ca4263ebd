package reason

// Codes of any subject.
const (
	CodeRefused Code = "refused" // a refusal of another package, in its words
	CodeError   Code = "error"   // an error of PostgreSQL, Kafka or the engine
)

func generalTexts() map[Code]string {
	return map[Code]string{
		CodeRefused: `{{text .cause}}`,
		CodeError:   `{{text .cause}}`,
	}
}

// Refused carries the cause of a refusal that another package made.
func Refused(cause string) Reason { return Reason{CodeRefused, Args{"cause": cause}} }

// Error carries an error's text.
func Error(err error) Reason { return Reason{CodeError, Args{"cause": err.Error()}} }
