"""`python -m cudnn_doctor`."""

from cudnn_doctor.cli import main

if __name__ == "__main__":
    main()
