@echo off
rem Opens .grpo and .grposession with the program in this folder, for this user; "remove" takes that away again.
setlocal
set classes=HKCU\Software\Classes
if "%~1"=="remove" (
    for %%e in (grpo grposession) do reg delete "%classes%\.%%e" /f >nul 2>&1
    reg delete "%classes%\GrpoLab.File" /f >nul 2>&1
    exit /b
)
for %%e in (grpo grposession) do reg add "%classes%\.%%e" /ve /d GrpoLab.File /f >nul
reg add "%classes%\GrpoLab.File" /ve /d "GRPO Lab file" /f >nul
reg add "%classes%\GrpoLab.File\DefaultIcon" /ve /d "%~dp0grpo-lab.exe,0" /f >nul
reg add "%classes%\GrpoLab.File\shell\open\command" /ve /d "\"%~dp0grpo-lab.exe\" \"%%1\"" /f >nul
