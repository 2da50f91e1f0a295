/* Qt's core library imports these converters from the icuuc.dll that Windows has and Wine lacks; it uses them for encodings
   that Qt does not know itself, and takes no converter for an answer. Stays beside the program under Wine, never in a package. */
#define NONE(name) __declspec(dllexport) void *name(void) { return 0; }

NONE(UCNV_FROM_U_CALLBACK_SUBSTITUTE)
NONE(UCNV_TO_U_CALLBACK_SUBSTITUTE)
NONE(ucnv_cbFromUWriteUChars)
NONE(ucnv_cbToUWriteUChars)
NONE(ucnv_close)
NONE(ucnv_countAvailable)
NONE(ucnv_fromUCountPending)
NONE(ucnv_fromUnicode)
NONE(ucnv_getAvailableName)
NONE(ucnv_getFromUCallBack)
NONE(ucnv_getMaxCharSize)
NONE(ucnv_getName)
NONE(ucnv_getStandardName)
NONE(ucnv_getToUCallBack)
NONE(ucnv_open)
NONE(ucnv_reset)
NONE(ucnv_setFromUCallBack)
NONE(ucnv_setToUCallBack)
NONE(ucnv_toUCountPending)
NONE(ucnv_toUnicode)
