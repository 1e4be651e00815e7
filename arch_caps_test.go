package virtstack_test

import (
	"go/ast"
	"strings"
	"testing"
)

// A reader holds one screen: source of these caps is CONTRIBUTING.md.
const (
	maxFileLines = 400
	maxFuncLines = 60
	maxNesting   = 3
	maxParams    = 5
	maxMainLines = 40
	maxLoopLines = 150
)

func TestSizeCaps(t *testing.T) {
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		if s.lines-1 > maxFileLines {
			t.Errorf("%s has %d lines, at most %d", s.path, s.lines-1, maxFileLines)
		}
		if under(s.dir, "cmd") && s.lines-1 > maxMainLines {
			t.Errorf("%s has %d lines: a main does nothing, at most %d", s.path, s.lines-1, maxMainLines)
		}
		checkFuncs(t, s)
	}
}

func TestLoopStaysSmall(t *testing.T) {
	lines := 0
	for _, s := range sources(t) {
		if s.dir == "kube/loop" && !s.test() {
			lines += s.lines - 1
		}
	}
	if lines == 0 || lines > maxLoopLines {
		t.Errorf("kube/loop has %d lines, want 1 to %d", lines, maxLoopLines)
	}
}

const literal = "a func literal"

func checkFuncs(t *testing.T, s source) {
	t.Helper()
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch f := n.(type) {
		case *ast.FuncDecl:
			checkFunc(t, s, f.Name.Name, f.Type, f.Body)
		case *ast.FuncLit:
			checkFunc(t, s, literal, f.Type, f.Body)
		}
		return true
	})
}

func checkFunc(t *testing.T, s source, name string, typ *ast.FuncType, body *ast.BlockStmt) {
	t.Helper()
	pos := s.set.Position(typ.Pos())
	// The parameters of a literal are those that its caller passes, often a library.
	if n := typ.Params.NumFields(); n > maxParams && name != literal {
		t.Errorf("%s: %s has %d parameters, at most %d: pass a struct of named fields", pos, name, n, maxParams)
	}
	if body == nil {
		return
	}
	lines := s.set.Position(body.End()).Line - pos.Line + 1
	if lines > maxFuncLines {
		t.Errorf("%s: %s has %d lines, at most %d", pos, name, lines, maxFuncLines)
	}
	if n := nesting(body); n > maxNesting {
		t.Errorf("%s: %s nests %d deep, at most %d", pos, name, n, maxNesting)
	}
}

// nesting returns how many of if, for, switch and select stand within each other; an else-if chain and the clauses of
// a switch count once, a func literal starts anew.
func nesting(n ast.Node) int {
	deepest := 0
	for _, c := range children(n) {
		deepest = max(deepest, nesting(c))
	}
	switch n.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		return deepest + 1
	}
	return deepest
}

func children(n ast.Node) []ast.Node {
	if chain, ok := n.(*ast.IfStmt); ok {
		return ifChildren(chain)
	}
	var direct []ast.Node
	ast.Inspect(n, func(c ast.Node) bool {
		if c == nil || c == n {
			return c == n
		}
		if _, ok := c.(*ast.FuncLit); !ok {
			direct = append(direct, c)
		}
		return false
	})
	return direct
}

func ifChildren(n *ast.IfStmt) []ast.Node {
	parts := []ast.Node{n.Body}
	switch e := n.Else.(type) {
	case *ast.IfStmt:
		parts = append(parts, ifChildren(e)...)
	case *ast.BlockStmt:
		parts = append(parts, e)
	}
	return parts
}

func TestNothingIsSkippedOrLeftForLater(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			if x != nil && (x.Name == "t" || x.Name == "tb" || x.Name == "b") && strings.HasPrefix(sel.Sel.Name, "Skip") {
				t.Errorf("%s: a skipped test proves nothing", s.set.Position(n.Pos()))
			}
			if x != nil && x.Name == "time" && sel.Sel.Name == "Sleep" {
				t.Errorf("%s: time.Sleep: wait for what you need, with a deadline", s.set.Position(n.Pos()))
			}
			return true
		})
		for _, group := range s.file.Comments {
			if strings.Contains(group.Text(), "TO"+"DO") || strings.Contains(group.Text(), "FIX"+"ME") {
				t.Errorf("%s: unfinished work without an issue", s.set.Position(group.Pos()))
			}
		}
	}
}
