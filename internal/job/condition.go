package job

import (
	"errors"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// The reasons for which a text is not one condition.
var (
	errNoCondition  = errors.New("it holds no condition")
	errStatement    = errors.New("a condition holds no semicolon: it is no statement")
	errClosesTooFew = errors.New("a parenthesis in it is not closed")
	errClosesMore   = errors.New("it closes a parenthesis that it does not open")
	errGoesOn       = errors.New("a quoted text or a comment in it does not end")
)

// OneCondition returns an error unless a text is one PostgreSQL condition that ends at the parenthesis around it:
// nothing in the text may close that parenthesis or start another statement.
func OneCondition(text string) error {
	s, depth, last := sqlScanner{rest: text + "\n)"}, 0, token{}
	for {
		t, ok := s.next()
		switch {
		case !ok && last.text == ")":
			return errClosesTooFew
		case !ok:
			return errGoesOn
		case t.text == ";":
			return errStatement
		case t.text == "(":
			depth++
		case t.text == ")" && depth > 0:
			depth--
		case t.text == ")" && s.rest != "":
			return errClosesMore
		case t.text == ")" && last.text == "":
			return errNoCondition
		case t.text == ")":
			return nil
		}
		last = t
	}
}

// expression takes one expression.
func expression(text string) (string, error) {
	if err := OneCondition(text); err != nil {
		return "", strict.Want(err.Error(), "write one expression over the query's columns, such as total / nullif(views, 0)")
	}
	return text, nil
}

// condition takes one condition.
func condition(text string) (string, error) {
	if err := OneCondition(text); err != nil {
		return "", strict.Want(err.Error(),
			"write one condition over the view's columns, such as hour < date_trunc('hour', now())")
	}
	return text, nil
}
