/* python.exe for building under Wine: the wheels that carry Windows' CPython have its library, and no program that starts it.
   PYTHON is the library's file name. */
#include <stdio.h>
#include <windows.h>

typedef int (*py_main)(int, wchar_t **);

int wmain(int argc, wchar_t **argv)
{
    HMODULE library = LoadLibraryW(PYTHON);
    py_main run = library ? (py_main)(void *)GetProcAddress(library, "Py_Main") : NULL;

    if (!run) {
        fwprintf(stderr, L"%ls cannot be loaded: error %lu.\n", PYTHON, GetLastError());
        return 1;
    }
    return run(argc, argv);
}
