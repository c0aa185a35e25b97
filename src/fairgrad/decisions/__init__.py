"""The best response to the multipliers: from the probabilities of the cells to fair decisions.

For fixed multipliers the Lagrangian ``sum_k p_k w_k e_k`` is minimised exactly by

    h(x) = argmax_l  sum_r w_(l,r) P(y = l, s = r | x),      w_k = 1 + (C' lambda)_k / p_k,

so that any model of the cells' probabilities becomes a fair classifier by J numbers, with negative
weights and many labels for free. Attributes that are constrained apart add up:

    h(x) = argmax_l  P(y = l | x) + sum_a sum_r (w_a(l,r) - 1) P(y = l, s_a = r | x).

For constraints on what is predicted the multipliers put a cost on every label in every cell, and

    h(x) = argmin_l  sum_k a[k, l] P(k | x),      a[k, l] = cost[y_k, l] + (C' lambda)[k, l] / p_k.

`judging` judges decisions on labelled rows. `solver` finds the best: a linear program over a few
decisions.
"""
