; The installer for Windows: for the user who runs it, without an administrator. tools/package/windows/installer.py calls
; makensis and gives LIST (the files of the package, as macros), VERSION, KILOBYTES, ICON, OUT and TARGET.
Unicode true
Target ${TARGET}
ManifestDPIAware true
SetCompressor /SOLID lzma
RequestExecutionLevel user
!include MUI2.nsh
!include "${LIST}"

!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\GrpoLab"
!define CLASSES "Software\Classes"

Name "GRPO Lab"
OutFile "${OUT}"
BrandingText "GRPO Lab ${VERSION}"
InstallDir "$LOCALAPPDATA\Programs\GRPO Lab"
InstallDirRegKey HKCU "${KEY}" InstallLocation
VIProductVersion "${VERSION}.0"
VIAddVersionKey ProductName "GRPO Lab"
VIAddVersionKey FileDescription "GRPO Lab, installer"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey LegalCopyright "MIT licence"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_FINISHPAGE_RUN "$INSTDIR\grpo-lab.exe"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
; Of these, the dialogs take the language of Windows, or else the first.
!insertmacro MUI_LANGUAGE English
!insertmacro MUI_LANGUAGE SimpChinese
LangString RUNNING ${LANG_ENGLISH} "GRPO Lab is running. Close it, then try again."
LangString RUNNING ${LANG_SIMPCHINESE} "GRPO Lab 正在运行。请先将其关闭，然后重试。"

; A program that runs keeps its own file from being written.
!macro REFUSE_WHILE_RUNNING
  IfFileExists "$INSTDIR\grpo-lab.exe" 0 +7
  ClearErrors
  FileOpen $0 "$INSTDIR\grpo-lab.exe" a
  IfErrors 0 +4
  MessageBox MB_OK|MB_ICONEXCLAMATION "$(RUNNING)" /SD IDOK
  SetErrorLevel 3
  Quit
  FileClose $0
!macroend

!macro TYPE SUFFIX CLASS WORDS
  WriteRegStr HKCU "${CLASSES}\${SUFFIX}" "" "${CLASS}"
  WriteRegStr HKCU "${CLASSES}\${SUFFIX}\OpenWithProgids" "${CLASS}" ""
  WriteRegStr HKCU "${CLASSES}\${CLASS}" "" "${WORDS}"
  WriteRegStr HKCU "${CLASSES}\${CLASS}\DefaultIcon" "" "$INSTDIR\grpo-lab.exe,0"
  WriteRegStr HKCU "${CLASSES}\${CLASS}\shell\open\command" "" '"$INSTDIR\grpo-lab.exe" "%1"'
!macroend

; What another program has made of the suffix since then is left to it.
!macro TYPE_BACK SUFFIX CLASS
  DeleteRegKey HKCU "${CLASSES}\${CLASS}"
  DeleteRegValue HKCU "${CLASSES}\${SUFFIX}\OpenWithProgids" "${CLASS}"
  DeleteRegKey /ifempty HKCU "${CLASSES}\${SUFFIX}\OpenWithProgids"
  ReadRegStr $0 HKCU "${CLASSES}\${SUFFIX}" ""
  StrCmp $0 "${CLASS}" 0 +2
  DeleteRegValue HKCU "${CLASSES}\${SUFFIX}" ""
  DeleteRegKey /ifempty HKCU "${CLASSES}\${SUFFIX}"
!macroend

!macro TELL_THE_DESKTOP
  System::Call 'shell32::SHChangeNotify(i 0x08000000, i 0, p 0, p 0)'
!macroend

Section
  !insertmacro REFUSE_WHILE_RUNNING
  ; an earlier version takes its own files away: what it had and this one has not must not stay
  IfFileExists "$INSTDIR\uninstall.exe" 0 +2
  ExecWait '"$INSTDIR\uninstall.exe" /S _?=$INSTDIR'
  !insertmacro FILES
  SetOutPath "$INSTDIR"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\GRPO Lab.lnk" "$INSTDIR\grpo-lab.exe"
  !insertmacro TYPE ".grpo" "GrpoLab.Run" "GRPO Lab run"
  !insertmacro TYPE ".grposession" "GrpoLab.Session" "GRPO Lab session"
  WriteRegStr HKCU "${KEY}" DisplayName "GRPO Lab"
  WriteRegStr HKCU "${KEY}" DisplayVersion "${VERSION}"
  WriteRegStr HKCU "${KEY}" DisplayIcon "$INSTDIR\grpo-lab.exe,0"
  WriteRegStr HKCU "${KEY}" InstallLocation "$INSTDIR"
  WriteRegStr HKCU "${KEY}" UninstallString '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${KEY}" QuietUninstallString '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${KEY}" EstimatedSize ${KILOBYTES}
  WriteRegDWORD HKCU "${KEY}" NoModify 1
  WriteRegDWORD HKCU "${KEY}" NoRepair 1
  !insertmacro TELL_THE_DESKTOP
SectionEnd

Section Uninstall
  !insertmacro REFUSE_WHILE_RUNNING
  !insertmacro TYPE_BACK ".grpo" "GrpoLab.Run"
  !insertmacro TYPE_BACK ".grposession" "GrpoLab.Session"
  DeleteRegKey HKCU "${KEY}"
  Delete "$SMPROGRAMS\GRPO Lab.lnk"
  !insertmacro FILES_BACK
  Delete "$INSTDIR\uninstall.exe"
  SetOutPath "$TEMP"
  RMDir "$INSTDIR"
  !insertmacro TELL_THE_DESKTOP
SectionEnd
