(declare-datatypes ((Mode 0)) (((walk) (bike) (car))))
(declare-const mode Mode) (declare-const n Int) (declare-const |a b| Real)
(assert (and (<= 0 n 3) (<= 0 |a b| (* 2 n)) (=> ((_ is walk) mode) (= n 0)) (distinct mode car)))
