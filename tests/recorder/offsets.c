/* The offsets of source/python.h, printed from CPython's own headers in the order of `struct layout`. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe_structs.h"
#endif
#else
#include <frameobject.h>
#endif
#define SHOW(type, field) printf(", %zu", offsetof(type, field))
int main(void) {
    printf("%d", PY_MINOR_VERSION);
#if PY_VERSION_HEX >= 0x030d0000
    SHOW(PyThreadState, current_frame), printf(", 0"), SHOW(_PyInterpreterFrame, f_executable), SHOW(_PyInterpreterFrame, previous);
    SHOW(_PyInterpreterFrame, instr_ptr), SHOW(_PyInterpreterFrame, owner);
#elif PY_VERSION_HEX >= 0x030b0000
    SHOW(PyThreadState, cframe), SHOW(_PyCFrame, current_frame), SHOW(_PyInterpreterFrame, f_code), SHOW(_PyInterpreterFrame, previous);
    SHOW(_PyInterpreterFrame, prev_instr), SHOW(_PyInterpreterFrame, owner);
#else
    SHOW(PyThreadState, frame), printf(", 0"), SHOW(PyFrameObject, f_code), SHOW(PyFrameObject, f_back), SHOW(PyFrameObject, f_lasti), printf(", 0");
#endif
    SHOW(PyCodeObject, co_firstlineno), SHOW(PyCodeObject, co_filename);
#if PY_VERSION_HEX >= 0x030b0000
    SHOW(PyCodeObject, co_qualname), SHOW(PyCodeObject, co_linetable), SHOW(PyCodeObject, co_code_adaptive);
#else
    SHOW(PyCodeObject, co_name), SHOW(PyCodeObject, co_linetable), printf(", 0");
#endif
    printf(", %zu, %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
    return 0;
}
