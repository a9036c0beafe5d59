"""How each op that isn't elementwise is lowered: one file per family, which adds its rows to the table
`lower.state.EMITTERS`.
"""
