"""The poll for Ctrl-C: a call of Python's, under the interpreter lock."""

SUPPORT = """
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyOS_InterruptOccurred()

define internal i1 @interrupted() noinline cold nounwind {
  %state = call i32 @PyGILState_Ensure()
  %occurred = call i32 @PyOS_InterruptOccurred()
  call void @PyGILState_Release(i32 %state)
  %found = icmp ne i32 %occurred, 0
  ret i1 %found
}
"""
